"""Taking due jobs for a worker, lane by lane (DESIGN.md, Claim)."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa

from jobq.statements.binds import BIGINTS, INTEGERS, ONE, SMALLINTS, TEXTS, TIMES, ZERO, param
from jobq.tables import TIMESTAMP, jobs, queues, workers

UNLIMITED: sa.ColumnElement[int] = sa.literal_column(
    "32767"
)  # failures < NULL would be NULL: a row without max_attempts is judged by its handler
CLAIMED = (
    jobs.c.id, jobs.c.attempt, jobs.c.queue, jobs.c.kind, sa.cast(jobs.c.args, sa.Text).label("args"), jobs.c.priority,
    jobs.c.run_at, jobs.c.failures, jobs.c.max_attempts, sa.cast(jobs.c.meta, sa.Text).label("meta"), jobs.c.created_at,
    jobs.c.worker_id,
)  # fmt: skip


@cache
def claim() -> sa.Executable:
    """Take up to `n` due jobs; one row each, or a single row of NULLs but for `now`, which every row carries.

    Lanes are searched in their order and lazily: a later one is not touched once n rows are locked. ARRAY(subquery) is
    evaluated once whatever the planner thinks, where `id IN (SELECT .. LIMIT n FOR UPDATE SKIP LOCKED)` has claimed all
    of 2 000 rows. The key-share lock on the worker's row means that a worker declared dead cannot claim again.

    Binds: worker_id, kinds, n, and of equal length, one entry a lane, lanes distinct: queues, priorities,
    run_ats, ids, limits.
    """
    lane = _open_lanes()
    due = _due_in(lane)
    picked = sa.select(due.c.id).select_from(lane.join(due, sa.true())).limit(param("n", sa.Integer))
    me = param("worker_id", sa.BigInteger)
    alive = sa.select(workers.c.id).where(workers.c.id == me).with_for_update(read=True, key_share=True)
    claimed = (
        sa.update(jobs)
        .where(jobs.c.id == sa.any_(sa.func.array(picked.scalar_subquery())), me == alive.scalar_subquery())
        .values(worker_id=me, attempt=jobs.c.attempt + ONE, attempted_at=sa.func.now())
        .returning(*CLAIMED)
        .cte("claimed")
    )
    one = sa.select(sa.func.now().label("now")).subquery("one")
    return sa.select(one.c.now, *claimed.c).select_from(one.outerjoin(claimed, sa.true()))


def _open_lanes() -> sa.Subquery:
    """The lanes asked for, without those of paused queues (read here, so that a pause holds from its commit on)."""
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
    paused = sa.select(queues.c.name).where(queues.c.paused_until > sa.func.now())
    open_ = asked.c.queue != sa.all_(sa.func.array(paused.scalar_subquery()))
    return sa.select(asked).where(open_).subquery("lane")


def _due_in(lane: sa.Subquery) -> sa.FromClause:
    """The next due jobs of one lane behind its cursor, locked; rows that others hold locked are passed by."""
    one = jobs.alias("one")
    position = sa.tuple_(one.c.run_at, one.c.id + ZERO)
    return (
        sa.select(one.c.id)
        .where(
            one.c.queue == lane.c.queue,
            one.c.priority == lane.c.priority,
            position > sa.tuple_(lane.c.run_at, lane.c.id),
            one.c.run_at <= sa.func.now(),
            one.c.worker_id.is_(None),
            one.c.kind == sa.any_(param("kinds", TEXTS)),
            one.c.failures < sa.func.coalesce(one.c.max_attempts, UNLIMITED),
        )
        .order_by(one.c.run_at, one.c.id + ZERO)
        .limit(lane.c.n)
        .with_for_update(skip_locked=True)
        .correlate(lane)
        .lateral("due")
    )


@cache
def queues_with_jobs() -> sa.Executable:
    """Every queue that has a row in `jobs`, by jumping through the index from one to the next."""
    first = sa.select(jobs.c.queue).order_by(jobs.c.queue).limit(1).subquery()
    found = sa.select(first.c.queue).cte("found", recursive=True)
    following = sa.select(sa.func.min(jobs.c.queue)).where(jobs.c.queue > found.c.queue).scalar_subquery()
    found = found.union_all(sa.select(following).where(found.c.queue.is_not(None)))
    return sa.select(found.c.queue).where(found.c.queue.is_not(None))


@cache
def queue_weights() -> sa.Executable:
    """The weights that the fleet's queues are set to."""
    return sa.select(queues.c.name, queues.c.weight)


@cache
def live_workers() -> sa.Executable:
    """How many workers hold a lease."""
    return sa.select(sa.func.count()).select_from(workers).where(workers.c.lease_until > sa.func.now())
