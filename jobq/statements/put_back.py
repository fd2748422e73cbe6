"""Putting claimed jobs back: after a failure or a snooze, or given back at no cost."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from jobq.statements.binds import json_param, seconds
from jobq.statements.errors import with_error
from jobq.statements.fence import held, still_mine
from jobq.statements.notify import told
from jobq.statements.queues import pause_for
from jobq.statements.slots import freeing
from jobq.tables import jobs


@cache
def put_back() -> sa.Executable:
    """Make one job pending again after a failure or a snooze.

    Binds: the_id, the_attempt, the_worker_id, delay (seconds; NULL: run_at stays), error (JSON text; NULL: no failure).
    """
    return _put_back().returning(jobs.c.id)


@cache
def put_back_limited() -> sa.Executable:
    """`put_back` for a job of a limited queue, with its slot. Binds: those of `put_back` and of `freeing`."""
    return _put_back().returning(jobs.c.id).add_cte(freeing())


@cache
def pause_and_put_back() -> sa.Executable:
    """Pause a job's queue and make the job pending again, in one statement: whoever sees the job sees the pause.

    One row: `id` NULL when the job was no longer ours; `began`: the queue was not paused before.
    Binds: those of `put_back`, `freeing` and `pause_for`, and channel.
    """
    paused = pause_for().cte("paused")
    back = _put_back().returning(jobs.c.id, jobs.c.queue, jobs.c.priority, jobs.c.run_at).cte("back")
    told_of = told(back.c.queue, back.c.priority, back.c.run_at)
    rows = paused.outerjoin(back, sa.true())
    return sa.select(back.c.id, paused.c.began, told_of).select_from(rows).add_cte(freeing())


def _put_back() -> sa.Update:
    error = json_param("error")
    failed = error.is_not(None)
    later = sa.func.now() + seconds("delay")
    return (
        sa.update(jobs)
        .where(*still_mine())
        .values(
            worker_id=sa.null(),
            run_at=sa.func.coalesce(later, jobs.c.run_at),
            failures=jobs.c.failures + sa.cast(failed, sa.Integer),
            errors=sa.case((failed, with_error(jobs.c.errors, error)), else_=jobs.c.errors),
        )
    )


@cache
def give_back() -> sa.Executable:
    """Make held jobs pending again at no cost in failures. Binds: worker_id, ids (ascending), attempts."""
    given = sa.update(jobs).where(*held()).values(worker_id=sa.null())
    return given.returning(jobs.c.id, jobs.c.queue, jobs.c.priority, jobs.c.run_at)


@cache
def give_back_unknown() -> sa.Executable:
    """Make pending what carries this worker's id and is not among `ids` in that attempt: a claim's answer was lost.

    Binds: me, ids (ascending), attempts.
    """
    mine = held("me")
    given = sa.update(jobs).where(mine[-1], sa.not_(sa.and_(*mine[:-1]))).values(worker_id=sa.null())
    return given.returning(jobs.c.id, jobs.c.queue, jobs.c.priority, jobs.c.run_at)
