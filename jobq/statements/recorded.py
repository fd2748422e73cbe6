"""Reading how an attempt has ended, where the answer to its end was lost, or another hand has the job."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from jobq.statements.binds import json_param, param
from jobq.statements.fence import done_by_us, ended_here, still_mine
from jobq.tables import finished_jobs, jobs


@cache
def recorded() -> sa.Executable:
    """Of jobs whose end may have been written, those whose it was. Binds: worker_id, ids (ascending), attempts."""
    return sa.select(finished_jobs.c.id).where(*ended_here())


@cache
def cancelled() -> sa.Executable:
    """Of jobs that were lost, those cancelled in this attempt. Binds: worker_id, ids (ascending), attempts."""
    by_hand = finished_jobs.c.state == sa.literal_column("'cancelled'", sa.Text)
    return sa.select(finished_jobs.c.id).where(*ended_here(), by_hand)


@cache
def was_put_back() -> sa.Executable:
    """One job, if this attempt of it ended by going back, whatever came after. Binds: the_id, the_attempt, probe.

    `probe` is JSON text that the history of errors contains if the failure was recorded; `[]` for a snooze.
    """
    open_, ended = (_that_went_on(table) for table in (jobs, finished_jobs))
    later = finished_jobs.c.attempt > param("the_attempt", sa.Integer)
    gone_on = sa.or_(jobs.c.worker_id.is_(None), jobs.c.attempt > param("the_attempt", sa.Integer))
    return sa.union_all(open_.where(gone_on), ended.where(later))


def _that_went_on(table: sa.Table) -> sa.Select[tuple[int]]:
    history = table.c.errors.contains(json_param("probe"))
    return sa.select(table.c.id).where(table.c.id == param("the_id", sa.BigInteger), history)


@cache
def lock_held() -> sa.Executable:
    """One claimed job, if it is still ours. Waits for a transaction in flight that is ending it."""
    return sa.select(jobs.c.id).where(*still_mine()).with_for_update()


@cache
def ended_by_us() -> sa.Executable:
    """One job, if this attempt of ours has ended it as done. Binds: the_id, the_attempt, the_worker_id."""
    return sa.select(finished_jobs.c.id).where(*done_by_us())
