"""What a worker asks every few seconds to know where to claim (DESIGN.md, The worker)."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa

from jobq.statements.slots import make_slots
from jobq.tables import jobs, queues, workers


@cache
def survey() -> sa.Executable:
    """One row for each queue that has jobs or that the database says something of; without any, a row of NULLs.

    Every row carries `live_workers`. The slots that a new limit asks for are made in the same statement. What grows
    with the backlog is jumped through by its index, from one queue to the next; the other tables are small.
    """
    made = make_slots().cte("made")  # it need not be read to be carried out
    alive, found = _live_workers(), _queues()
    return sa.select(alive.c.live_workers, *found.c).select_from(alive.outerjoin(found, sa.true())).add_cte(made)


def _queues() -> sa.Subquery:
    with_jobs = _queues_with_jobs()
    name = sa.func.coalesce(with_jobs.c.queue, queues.c.name)
    has_jobs, is_set = with_jobs.c.queue.is_not(None), queues.c.name.is_not(None)
    told = queues.c.weight, queues.c.fifo, queues.c.concurrency
    every = with_jobs.join(queues, with_jobs.c.queue == queues.c.name, full=True)
    columns = name.label("name"), has_jobs.label("has_jobs"), is_set.label("is_set"), *told
    return sa.select(*columns).select_from(every).subquery("found")


def _queues_with_jobs() -> sa.Subquery:
    """Every queue that has a row in `jobs`, by jumping through the index from one to the next."""
    first = sa.select(jobs.c.queue).order_by(jobs.c.queue).limit(1).subquery()
    found = sa.select(first.c.queue).cte("jumped", recursive=True)
    following = sa.select(sa.func.min(jobs.c.queue)).where(jobs.c.queue > found.c.queue).scalar_subquery()
    found = found.union_all(sa.select(following).where(found.c.queue.is_not(None)))
    return sa.select(found.c.queue).where(found.c.queue.is_not(None)).subquery("with_jobs")


def _live_workers() -> sa.Subquery:
    """How many workers hold a lease."""
    number: Any = sa.func.count()
    live = workers.c.lease_until > sa.func.now()
    return sa.select(number.label("live_workers")).select_from(workers).where(live).subquery("alive")
