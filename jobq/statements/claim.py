"""Taking due jobs for a worker, lane by lane (DESIGN.md, Claim)."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa

from jobq.statements.binds import BIGINTS, INTEGERS, ONE, SMALLINTS, TEXTS, TIMES, ZERO, Place, param
from jobq.statements.limits import IS_PAUSED, limit_of
from jobq.tables import TIMESTAMP, jobs, queues, workers

UNLIMITED: sa.ColumnElement[int] = sa.literal_column(
    "32767"
)  # failures < NULL would be NULL: a row without max_attempts is judged by its handler
EMPTY: sa.ColumnElement[Any] = sa.cast(sa.literal_column("'{}'"), TEXTS)


def place_of(name: str) -> sa.ColumnElement[Any]:
    """Where a row is, of a table by its name in the statement, which no schema is said with."""
    return sa.literal_column(f"{name}.ctid", Place)


CLAIMED = (
    jobs.c.id, jobs.c.attempt, jobs.c.queue, jobs.c.kind, sa.cast(jobs.c.args, sa.Text).label("args"), jobs.c.priority,
    jobs.c.run_at, jobs.c.failures, jobs.c.max_attempts, sa.cast(jobs.c.meta, sa.Text).label("meta"), jobs.c.created_at,
    sa.cast(place_of(jobs.name), sa.Text).label("place"),
)  # fmt: skip


@cache
def claim() -> sa.Executable:
    """Take up to `n` due jobs: `headed` rows, of `now` and `reopens_at`.

    `reopens_at`: when the next of the queues that are paused is so no longer.

    Lanes are searched in their order and lazily: a later one is not touched once n rows are locked. ARRAY(subquery) is
    evaluated once whatever the planner thinks, where `id IN (SELECT .. LIMIT n FOR UPDATE SKIP LOCKED)` has claimed all
    of 2 000 rows. Rows are found again by their place, which they keep while they are locked, not by the index of ids,
    which costs the more the further the rows of many queues lie apart. One that somebody wrote between this
    statement's start and its lock has another place than the statement sees: it stays as it is, for the next sweep.

    The key-share lock on the worker's row means that a worker declared dead cannot claim again.

    Binds: worker_id, kinds, n, and of equal length, one entry a lane, lanes distinct: queues, priorities,
    run_ats, ids, limits.
    """
    settings = _settings()
    lane = _open_lanes(settings)
    due = _due_in(lane)
    picked = sa.select(due.c.place).select_from(lane.join(due, sa.true())).limit(param("n", sa.Integer))
    me = param("worker_id", sa.BigInteger)
    alive = sa.select(workers.c.id).where(workers.c.id == me).with_for_update(read=True, key_share=True)
    claimed = (
        sa.update(jobs)
        .where(place_of(jobs.name) == sa.any_(sa.func.array(picked.scalar_subquery())), me == alive.scalar_subquery())
        .values(worker_id=me, attempt=jobs.c.attempt + ONE, attempted_at=sa.func.now())
        .returning(*CLAIMED)
        .cte("claimed")
    )
    return headed(claimed, sa.func.now().label("now"), settings.c.reopens_at)


def headed(rows: sa.CTE, *head: sa.ColumnElement[Any]) -> sa.Executable:
    """A row of `head`, and behind it those of `rows`; the columns of the other are NULL.

    Not joined: what is the same for a thousand jobs would be sent, and read, a thousand times.
    """
    without_rows = [sa.cast(sa.null(), column.type).label(column.key) for column in rows.c]
    without_head = [sa.cast(sa.null(), column.type) for column in head]
    return sa.union_all(sa.select(*head, *without_rows), sa.select(*without_head, *rows.c))


def _settings() -> sa.CTE:
    """Of all queues: those that are paused or limited, and when the next pause ends. One scan of a small table."""
    closed = sa.or_(IS_PAUSED, limit_of().is_not(None))
    names = sa.func.array_agg(queues.c.name, type_=TEXTS).filter(closed)
    reopens_at = sa.func.min(queues.c.paused_until).filter(IS_PAUSED)
    return sa.select(sa.func.coalesce(names, EMPTY).label("closed"), reopens_at.label("reopens_at")).cte("settings")


def _open_lanes(settings: sa.CTE) -> sa.Subquery:
    """The lanes asked for, without those of paused queues and of limited ones, which are claimed with their slots.

    Read here, so that a pause and a limit hold from their commit on, whatever this worker has heard of them.
    """
    columns: dict[str, Any] = {
        "queue": sa.Text,
        "priority": sa.SmallInteger,
        "run_at": TIMESTAMP,
        "id": sa.BigInteger,
        "n": sa.Integer,
    }
    asked = (
        sa.func.unnest(
            param("queues", TEXTS), param("priorities", SMALLINTS), param("run_ats", TIMES),
            param("ids", BIGINTS), param("limits", INTEGERS),
        )
        .table_valued(*[sa.column(name, type_) for name, type_ in columns.items()])
        .render_derived(name="asked")
    )  # fmt: skip
    closed = sa.cast(sa.select(settings.c.closed).scalar_subquery(), TEXTS)  # without the cast a set of arrays
    return sa.select(asked).where(asked.c.queue != sa.all_(closed)).subquery("lane")


def may_run(one: Any) -> tuple[sa.ColumnElement[bool], ...]:
    """Rows that are due and have an attempt left, whether they run or wait."""
    return one.c.run_at <= sa.func.now(), one.c.failures < sa.func.coalesce(one.c.max_attempts, UNLIMITED)


def is_due(one: Any) -> tuple[sa.ColumnElement[bool], ...]:
    """Rows that wait and may be claimed."""
    return *may_run(one), one.c.worker_id.is_(None)


def _due_in(lane: sa.Subquery) -> sa.FromClause:
    """Where the next due jobs of one lane behind its cursor are, locked; rows that others hold locked are passed by."""
    one = jobs.alias("one")
    position = sa.tuple_(one.c.run_at, one.c.id + ZERO)
    return (
        sa.select(place_of(one.name).label("place"))
        .where(
            one.c.queue == lane.c.queue,
            one.c.priority == lane.c.priority,
            position > sa.tuple_(lane.c.run_at, lane.c.id),
            one.c.kind == sa.any_(param("kinds", TEXTS)),
            *is_due(one),
        )
        .order_by(one.c.run_at, one.c.id + ZERO)
        .limit(lane.c.n)
        .with_for_update(skip_locked=True)
        .correlate(lane)
        .lateral("due")
    )
