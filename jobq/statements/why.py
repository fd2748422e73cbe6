"""What bears on one job, in one statement: a job that moves, or a pause that begins, meanwhile is seen or is not."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from jobq.answers.facts import MOST_BEFORE
from jobq.statements.binds import ONE, SMALLINTS, ZERO, param
from jobq.statements.claim import may_run
from jobq.statements.limits import IS_PAUSED, limit_of
from jobq.tables import all_jobs, jobs, kinds, queues, slots, workers

PLAIN = (
    "id", "kind", "queue", "priority", "state", "run_at", "attempt", "failures", "worker_id", "attempted_at",
    "finished_at", "outcome",
)  # fmt: skip
PRIORITIES = sa.cast(sa.literal_column("'{0,1,2,3}'"), SMALLINTS)
NOW = sa.func.now()
HIGHEST_ID = sa.literal_column(str(2**63 - 1), sa.BigInteger)


@cache
def facts() -> sa.Executable:
    """One row: `now`, `head_id`, `before`, and as JSON `found` (the job and the head), queue, slots, workers. Bind: id.

    JSON, so that one statement answers with rows of several shapes; as text, so that no driver parses it.
    """
    place = ("id", "queue", "priority", "run_at")
    target = sa.select(*[all_jobs.c[name] for name in place]).where(all_jobs.c.id == param("id", sa.BigInteger))
    asked = target.cte("asked")
    head = _head(asked).cte("head")
    queue = _queue_of(asked)
    parts = {"found": _found(asked, head), "queue": _queue(queue), "slots": _slots(queue), "workers": _workers()}
    return sa.select(
        NOW.label("now"),
        sa.select(head.c.id).scalar_subquery().label("head_id"),
        _before(asked).label("before"),
        *[_as_json(rows, name).label(name) for name, rows in parts.items()],
    )


def _as_json(rows: Any, name: str) -> sa.ScalarSelect[Any]:
    each = rows.subquery(f"each_{name}")
    return sa.select(sa.cast(sa.func.json_agg(each.table_valued()), sa.Text)).scalar_subquery()


def _found(asked: sa.CTE, head: sa.CTE) -> Any:
    """The job, and the head of its queue. By a list of ids: a join with the view would read both tables whole."""
    ids = sa.union_all(sa.select(asked.c.id), sa.select(head.c.id))
    own = all_jobs.c.max_attempts
    published = sa.select(kinds.c.max_attempts).where(kinds.c.kind == all_jobs.c.kind).scalar_subquery()
    last = sa.type_coerce(all_jobs.c.errors, JSONB)[-1]
    columns = [
        *[all_jobs.c[name] for name in PLAIN],
        own.label("own_max_attempts"),
        sa.func.coalesce(own, published).label("max_attempts"),
        sa.case((last.is_not(None), sa.cast(sa.func.jsonb_build_array(last), sa.Text))).label("last_error"),
        _locked_by().label("locked_by"),
    ]
    return sa.select(*columns).where(all_jobs.c.id == sa.any_(sa.func.array(ids.scalar_subquery())))


def _locked_by() -> sa.ScalarSelect[Any]:
    """Which session holds a waiting job's row locked: claims pass it by. Who is not its owner sees no name.

    xmax is the transaction that locked the row last; in pg_locks is each that goes on.
    """
    row = jobs.alias("row")
    locks = sa.table("pg_locks", *map(sa.column, ("pid", "transactionid", "granted")), schema="pg_catalog")
    activity = sa.table("pg_stat_activity", *map(sa.column, ("pid", "application_name")), schema="pg_catalog")
    named = sa.func.nullif(activity.c.application_name, sa.literal_column("''"))
    said = sa.func.concat_ws(sa.literal_column("' '"), sa.func.coalesce(locks.c.pid, ZERO), named)
    return (
        sa.select(said)
        .select_from(row.join(locks, locks.c.transactionid == sa.literal_column("row.xmax")))
        .join(activity, activity.c.pid == locks.c.pid, isouter=True)
        .where(row.c.id == all_jobs.c.id, locks.c.granted, locks.c.pid.is_distinct_from(sa.func.pg_backend_pid()))
        .limit(ONE)
        .correlate(all_jobs)
        .scalar_subquery()
    )


def _head(asked: sa.CTE) -> sa.Select[Any]:
    """The job that a FIFO queue is to run first, whether it waits or runs."""
    level, first = _levels(), jobs.alias("first")
    in_lane = (
        sa.select(first.c.id)
        .where(first.c.queue == asked.c.queue, first.c.priority == level.c.priority, *may_run(first))
        .order_by(first.c.run_at, first.c.id + ZERO)
        .limit(ONE)
        .correlate(asked, level)
        .lateral("in_lane")
    )
    found = sa.join(asked, level, sa.true()).join(in_lane, sa.true())
    return sa.select(in_lane.c.id).select_from(found).where(_in_order(asked)).order_by(level.c.priority).limit(ONE)


def _before(asked: sa.CTE) -> sa.ScalarSelect[Any]:
    """How many due jobs come first: those that a live worker of the queue may claim, in a FIFO queue all of them."""
    level, one = _levels(), jobs.alias("one")
    is_above = level.c.priority < asked.c.priority
    end = (sa.case((is_above, NOW), else_=asked.c.run_at), sa.case((is_above, HIGHEST_ID), else_=asked.c.id))
    claimable = sa.and_(one.c.worker_id.is_(None), one.c.kind == sa.any_(sa.func.array(_known(asked))))
    earlier = (
        sa.select(one.c.id)
        .where(
            one.c.queue == asked.c.queue,
            one.c.priority == level.c.priority,
            sa.tuple_(one.c.run_at, one.c.id + ZERO) < sa.tuple_(*end),
            sa.or_(_in_order(asked), claimable),
            *may_run(one),
        )
        .correlate(asked, level)
        .lateral("earlier")
    )
    found = sa.join(asked, level, level.c.priority <= asked.c.priority).join(earlier, sa.true())
    some = sa.select(earlier.c.id).select_from(found).limit(sa.literal_column(str(MOST_BEFORE + 1))).subquery("some")
    return sa.select(sa.func.count()).select_from(some).scalar_subquery()


def _known(asked: sa.CTE) -> sa.ScalarSelect[Any]:
    """The kinds that live workers of the queue have handlers for."""
    serves = sa.or_(workers.c.queues.is_(None), _queue_of(asked) == sa.any_(workers.c.queues))
    return sa.select(sa.func.unnest(workers.c.kinds)).where(workers.c.lease_until > NOW, serves).scalar_subquery()


def _in_order(asked: sa.CTE) -> sa.ColumnElement[bool]:
    return sa.exists().where(queues.c.name == _queue_of(asked), queues.c.fifo)


def _queue_of(asked: sa.CTE) -> sa.ScalarSelect[Any]:
    return sa.select(asked.c.queue).correlate(None).scalar_subquery()


def _levels() -> Any:
    return sa.func.unnest(PRIORITIES).table_valued("priority").render_derived(name="level")


def _queue(name: sa.ScalarSelect[Any]) -> Any:
    paused = {each: sa.case((IS_PAUSED, queues.c[each])).label(each) for each in ("paused_until", "pause_reason")}
    fifo = sa.func.coalesce(queues.c.fifo, sa.false()).label("fifo")
    return sa.select(fifo, limit_of().label("limit"), *paused.values()).where(queues.c.name == name)


def _slots(queue: sa.ScalarSelect[Any]) -> Any:
    ready_at = sa.case((slots.c.ready_at > NOW, slots.c.ready_at)).label("ready_at")
    runs = sa.exists().where(
        jobs.c.id == slots.c.job_id, jobs.c.attempt == slots.c.attempt, jobs.c.worker_id == slots.c.worker_id
    )
    has_ended = sa.and_(slots.c.worker_id.is_not(None), ~runs).label("has_ended")
    held = sa.select(slots.c.n, slots.c.worker_id, slots.c.job_id, ready_at, has_ended)
    return held.where(slots.c.queue == queue).order_by(slots.c.n)


def _workers() -> Any:
    """Every worker that has a row; one scan of `jobs` counts what they run."""
    runs = (
        sa.select(jobs.c.worker_id, sa.func.count().label("running"))
        .where(jobs.c.worker_id.is_not(None))
        .group_by(jobs.c.worker_id)
        .subquery("runs")
    )
    columns = [workers.c[name] for name in ("id", "name", "queues", "kinds", "concurrency", "lease_until")]
    lease = sa.extract("epoch", workers.c.lease).label("lease_seconds")
    running = sa.func.coalesce(runs.c.running, ZERO).label("running")
    found = workers.outerjoin(runs, runs.c.worker_id == workers.c.id)
    return sa.select(*columns, lease, running).select_from(found).order_by(workers.c.started_at, workers.c.id)
