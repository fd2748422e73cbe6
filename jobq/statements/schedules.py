"""Schedules: what code says of them, which ticks are settled, and the jobs that they enqueue."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from jobq.statements import unique
from jobq.statements.binds import ONE, TEXTS, ZERO, as_interval, json_param, param
from jobq.statements.enqueue import COLUMNS, NOTHING, due_at, inserted
from jobq.statements.enqueue_rows import told_by_lane
from jobq.tables import TIMESTAMP, jobs, schedules, workers

PUBLISHED = ("kind", "form", "expression", "timezone", "catch_up", "job")
# `seen` is the last_tick that the step was computed from. The arrays' binds are `each_` and the name of the field: as
# names of columns SQLAlchemy would take them for values of the UPDATE.
FIELDS: dict[str, Any] = {
    "name": sa.Text,
    "seen": TIMESTAMP,
    "tick": TIMESTAMP,
    "missed": sa.BigInteger,
    "fires": sa.Boolean,
    "kind": sa.Text,
    "queue": sa.Text,
    "args": sa.Text,
    "priority": sa.SmallInteger,
    "delay": sa.Double,
    "max_attempts": sa.Integer,
    "meta": sa.Text,
}


def _text(value: str) -> sa.ColumnElement[str]:
    return sa.literal_column(f"'{value}'", sa.Text)


def _key(name: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    return _text("schedule:") + name


def _is_open(name: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Whether a job of the schedule waits or runs."""
    return sa.exists().where(jobs.c.unique_key == _key(name))


@cache
def publish() -> sa.Executable:
    """A schedule as the code says it: seen first, or changed; what has been settled stays. Binds: name, PUBLISHED.

    Row: the kind and expression that stood there before, where they were others.
    """
    before = sa.select(schedules).where(schedules.c.name == param("name", sa.Text)).cte("before")
    values: dict[str, Any] = {name: param(name, sa.Text) for name in ("name", *PUBLISHED) if name != "job"}
    insert = pg.insert(schedules).values(**values, job=json_param("job"))
    new = insert.excluded
    differs = sa.or_(*[schedules.c[name].is_distinct_from(new[name]) for name in PUBLISHED])
    written = insert.on_conflict_do_update(
        index_elements=[schedules.c.name], set_={name: new[name] for name in PUBLISHED}, where=differs
    )
    given = written.returning(schedules.c.kind, schedules.c.expression).cte("written")
    changed = sa.or_(before.c.kind != given.c.kind, before.c.expression != given.c.expression)
    return sa.select(before.c.kind, before.c.expression).select_from(before.join(given, sa.true())).where(changed)


@cache
def look() -> sa.Executable:
    """How far the schedules are, by the database's clock. Binds: names. Rows: now, name (NULL: none), and the rest.

    One row at least, for the clock.
    """
    clock = sa.select(sa.func.now().label("now")).subquery("clock")
    named = schedules.c.name == sa.any_(param("names", TEXTS))
    return sa.select(
        clock.c.now, schedules.c.name, schedules.c.last_tick, _is_open(schedules.c.name).label("is_open")
    ).select_from(clock.outerjoin(schedules, named))


@cache
def fire() -> sa.Executable:
    """Settle steps, and enqueue the jobs of those that fire. Binds: an array for each of FIELDS, and channel.

    By compare-and-set: a step whose schedule has been settled further since it was `seen`, by whoever, does nothing,
    and neither does one whose row another transaction holds, or whose tick the database's clock has not reached.
    Rows: name, fate, job_id (NULL: not enqueued) of the steps that were taken; a row for each lane without a name.
    """
    step = _steps()
    taken = (
        sa.select(*step.c)
        .select_from(step.join(schedules, schedules.c.name == step.c.name))
        .where(schedules.c.last_tick == step.c.seen, step.c.seen < step.c.tick, step.c.tick <= sa.func.now())
        .order_by(schedules.c.name)
        .with_for_update(of=schedules, skip_locked=True)
        .cte("taken")
    )
    job = _job(taken)
    rows = sa.select(*[job[name] for name in COLUMNS]).where(taken.c.fires)
    fresh = inserted(rows.order_by(unique.bytewise(taken.c.name)).suffix_with(unique.UNLESS_HELD))
    settled = _settled(taken, fresh)
    answers = sa.select(settled.c.name, settled.c.last_fate.label("fate"), settled.c.job_id, NOTHING.label("told"))
    return sa.union_all(answers, told_by_lane(fresh, sa.Text, sa.Text, sa.BigInteger))


def _steps() -> sa.CTE:
    arrays = [param(f"each_{name}", ARRAY(type_)) for name, type_ in FIELDS.items()]
    columns = [sa.column(name, type_) for name, type_ in FIELDS.items()]
    row = sa.func.unnest(*arrays).table_valued(*columns).render_derived(name="row")
    return sa.select(*row.c).cte("step")


def _job(step: sa.CTE) -> dict[str, sa.ColumnElement[Any]]:
    """The job of a step that fires; its meta says of which tick."""
    tick = sa.func.to_char(sa.func.timezone(_text("UTC"), step.c.tick), _text('YYYY-MM-DD"T"HH24:MI:SS.USZ'))
    of_tick = sa.func.jsonb_build_object(_text("schedule"), step.c.name, _text("tick"), tick, type_=JSONB)
    return {
        "queue": step.c.queue,
        "kind": step.c.kind,
        "args": sa.cast(step.c.args, JSONB),
        "priority": step.c.priority,
        "run_at": due_at(sa.cast(sa.null(), TIMESTAMP), as_interval(step.c.delay)),
        "max_attempts": step.c.max_attempts,
        "unique_key": _key(step.c.name),
        "callsite": _key(step.c.name),
        "meta": sa.cast(step.c.meta, JSONB).op("||", return_type=JSONB)(of_tick),
    }


def _settled(taken: sa.CTE, fresh: sa.CTE) -> sa.CTE:
    """The rows of the steps that were taken move on; whether the insert found the key free tells the tick's fate."""
    done = (
        sa.select(taken.c.name, taken.c.tick, taken.c.missed, taken.c.fires, fresh.c.id.label("job_id"))
        .select_from(taken.outerjoin(fresh, fresh.c.unique_key == _key(taken.c.name)))
        .cte("done")
    )
    is_enqueued, is_skipped = done.c.job_id.is_not(None), sa.and_(done.c.fires, done.c.job_id.is_(None))
    fate = sa.case((is_enqueued, _text("enqueued")), (is_skipped, _text("skipped")), else_=_text("missed"))
    return (
        sa.update(schedules)
        .where(schedules.c.name == done.c.name)
        .values(
            last_tick=done.c.tick,
            last_fate=fate,
            enqueued=schedules.c.enqueued + sa.case((is_enqueued, ONE), else_=ZERO),
            skipped=schedules.c.skipped + sa.case((is_skipped, ONE), else_=ZERO),
            missed=schedules.c.missed + done.c.missed,
        )
        .returning(schedules.c.name, schedules.c.last_fate, done.c.job_id)
        .cte("settled")
    )


@cache
def read() -> sa.Executable:
    """All schedules by their names, with who of the live workers holds them, and now. `job` as text. Binds: none."""
    now = sa.func.now()
    holds = sa.select(sa.func.count()).where(
        workers.c.lease_until >= now, schedules.c.name == sa.any_(workers.c.schedules)
    )
    others = [column for column in schedules.c if column.name != "job"]
    job = sa.cast(schedules.c.job, sa.Text).label("job")
    live = holds.scalar_subquery().label("holders")
    return sa.select(*others, job, live, now.label("read_at")).order_by(unique.bytewise(schedules.c.name))


@cache
def read_job() -> sa.Executable:
    """What a schedule enqueues, as binds of one enqueue. Binds: name."""
    job = schedules.c.job
    return sa.select(
        schedules.c.kind,
        job["queue"].astext.label("queue"),
        sa.cast(job["args"], sa.Text).label("args"),
        sa.cast(job["priority"].astext, sa.SmallInteger).label("priority"),
        sa.cast(job["delay"].astext, sa.Double).label("delay"),
        sa.cast(job["max_attempts"].astext, sa.Integer).label("max_attempts"),
        sa.cast(job["meta"], sa.Text).label("meta"),
    ).where(schedules.c.name == param("name", sa.Text))
