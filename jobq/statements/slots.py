"""The slots of limited queues: freed, and made (DESIGN.md, Limited queues).

A row of `slots` is the right to run one job of its queue; it carries the fence of the attempt that has it. It is freed
in the statement that writes that attempt's end: no other order of the two can be seen, whatever dies in between.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.sql.dml import ReturningUpdate

from jobq.statements.binds import BIGINTS, param, seconds
from jobq.statements.limits import limit_of
from jobq.tables import jobs, queues, slots

FREE: dict[str, Any] = {"worker_id": sa.null(), "job_id": sa.null(), "attempt": sa.null()}
NOW = sa.func.now()


def freeing() -> sa.CTE:
    """Free the slot of an attempt, as part of the statement that writes its end. `wait`: until it is ready again.

    Its own fence: a job that was cancelled is gone, and its slot is this worker's until the handler has ended.
    Binds: the_id, the_attempt, the_worker_id, wait (seconds).
    """
    return _free_one().cte("freed")


@cache
def free_slot() -> sa.Executable:
    """Free the slot of an attempt whose end is written or lost. Binds: the_id, the_attempt, the_worker_id, wait."""
    return _free_one()


def _free_one() -> ReturningUpdate[tuple[int]]:
    mine = (
        slots.c.job_id == param("the_id", sa.BigInteger),
        slots.c.attempt == param("the_attempt", sa.Integer),
        slots.c.worker_id == param("the_worker_id", sa.BigInteger),
    )
    ready_at = sa.func.greatest(slots.c.ready_at, NOW + seconds("wait"))
    return sa.update(slots).where(*mine).values(**FREE, ready_at=ready_at).returning(slots.c.n)


@cache
def free_slots() -> sa.Executable:
    """Free what a leaving worker has. Binds: me, kept (jobs whose handler still runs), wait (seconds; for these)."""
    still_runs = slots.c.job_id == sa.any_(param("kept", BIGINTS))
    ready_at = sa.case((still_runs, NOW + seconds("wait")), else_=slots.c.ready_at)
    return sa.update(slots).where(slots.c.worker_id == param("me", sa.BigInteger)).values(**FREE, ready_at=ready_at)


@cache
def free_unknown() -> sa.Executable:
    """Free the slots of a worker that a claim with a lost answer has taken. Binds: me, ids (jobs it knows of)."""
    unknown = sa.and_(slots.c.worker_id == param("me", sa.BigInteger), slots.c.job_id != sa.all_(param("ids", BIGINTS)))
    return sa.update(slots).where(unknown).values(**FREE)


@cache
def release_slots() -> sa.Executable:
    """Slots of lost workers, but of those of which a job was left locked. Binds: gone (ids)."""
    holders = sa.select(jobs.c.worker_id).where(jobs.c.worker_id == sa.any_(param("gone", BIGINTS)))
    free = sa.and_(slots.c.worker_id == sa.any_(param("gone", BIGINTS)), slots.c.worker_id.not_in(holders))
    return sa.update(slots).where(free).values(**FREE)


@cache
def make_slots() -> postgresql.Insert:
    """The slots that limits ask for and that are not there. None is deleted: beyond a limit it is not given out."""
    number = sa.func.generate_series(sa.literal_column("1"), limit_of()).table_valued("n").render_derived(name="number")
    there = sa.exists().where(slots.c.queue == queues.c.name, slots.c.n == number.c.n)
    rows = (
        sa.select(queues.c.name, sa.cast(number.c.n, sa.SmallInteger))
        .select_from(queues.join(number, sa.true()))
        .where(limit_of().is_not(None), ~there)
        .order_by(queues.c.name, number.c.n)  # workers that start together wait for each other in one direction
    )
    return postgresql.insert(slots).from_select(["queue", "n"], rows, include_defaults=False).on_conflict_do_nothing()
