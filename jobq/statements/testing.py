"""What `jobq.testing` asks for beside the worker's own statements: which lanes have a due job, and making one due."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from jobq.statements.binds import ONE, TEXTS, param
from jobq.statements.claim import UNLIMITED, is_due
from jobq.tables import jobs, queues, slots


@cache
def due_lanes() -> sa.Executable:
    """The lanes with a due job, in the order of their first ones: queue, priority. Bind: kinds."""
    place = sa.func.row_number().over(partition_by=(jobs.c.queue, jobs.c.priority), order_by=(jobs.c.run_at, jobs.c.id))
    due = (
        sa.select(jobs.c.id, jobs.c.queue, jobs.c.priority, jobs.c.run_at, place.label("place"))
        .where(jobs.c.kind == sa.any_(param("kinds", TEXTS)), *is_due(jobs))
        .subquery("due")
    )
    first = sa.select(due.c.queue, due.c.priority).where(due.c.place == ONE)
    return first.order_by(due.c.priority, due.c.run_at, due.c.id)


@cache
def limits() -> sa.Executable:
    """The limited queues, and whether each is FIFO."""
    limited = sa.or_(queues.c.fifo.is_(sa.true()), queues.c.concurrency.is_not(None))
    return sa.select(queues.c.name, queues.c.fifo).where(limited)


@cache
def bring_forward() -> sa.Executable:
    """Make the job due that is scheduled first. Binds: kinds, queues (NULL: any). Returns its queue."""
    of_queue = param("queues", TEXTS)
    waiting = (
        sa.select(jobs.c.id)
        .where(
            jobs.c.kind == sa.any_(param("kinds", TEXTS)),
            sa.or_(of_queue.is_(None), jobs.c.queue == sa.any_(of_queue)),
            jobs.c.worker_id.is_(None),
            jobs.c.run_at > sa.func.now(),
            jobs.c.failures < sa.func.coalesce(jobs.c.max_attempts, UNLIMITED),
        )
        .order_by(jobs.c.run_at, jobs.c.id)
        .limit(ONE)
        .with_for_update(skip_locked=True)
    )
    chosen = jobs.c.id == sa.any_(sa.func.array(waiting.scalar_subquery()))
    return sa.update(jobs).where(chosen).values(run_at=sa.func.now()).returning(jobs.c.queue)


@cache
def free_waiting_slots() -> sa.Executable:
    """Make slots ready that wait for a retry or a throttle. Bind: queues (NULL: any). Returns their queues."""
    of_queue = param("of_queues", TEXTS)
    waits = sa.and_(slots.c.worker_id.is_(None), slots.c.ready_at > sa.func.now())
    of_these = sa.or_(of_queue.is_(None), slots.c.queue == sa.any_(of_queue))
    return sa.update(slots).where(waits, of_these).values(ready_at=sa.func.now()).returning(slots.c.queue)
