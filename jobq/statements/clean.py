"""Deleting what has been kept for its time: by index, in chunks, each a statement and a transaction of its own."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from jobq.statements.binds import param, seconds
from jobq.statements.leader import NAME, in_office
from jobq.statements.sums import interval
from jobq.tables import TIMESTAMP, finished_jobs, leader, sums

_NOW = sa.func.now()


@cache
def delete_expired() -> sa.Executable:
    """Delete the next `most` expired jobs: how many it were, and the latest expires_at of them.

    The next chunk starts there (`since`), or each would walk again over the dead index entries of all before it, which
    no vacuum takes away while an old snapshot is open. Rows that others hold locked stay for the next pass.
    Binds: since, most.
    """
    return _delete(sa.true())


@cache
def delete_expired_in_office() -> sa.Executable:
    """As `delete_expired`, by the leader. Binds: since, most, me, the_term."""
    return _delete(in_office())


@cache
def delete_old_sums() -> sa.Executable:
    """Delete sums that have been kept for their time. Binds: minutes (1 or 60: which sums), keep, me, the_term."""
    old = sums.c.starts_at < _NOW - seconds("keep")
    return sa.delete(sums).where(sums.c.minutes == param("minutes", sa.SmallInteger), old, in_office())


@cache
def count_expired() -> sa.Executable:
    """How many jobs there are to delete."""
    return sa.select(sa.func.count()).select_from(finished_jobs).where(*_is_over())


def _delete(fence: sa.ColumnElement[bool]) -> sa.Executable:
    chosen = (
        sa.select(finished_jobs.c.id)
        .where(*_is_over(), finished_jobs.c.expires_at >= param("since", TIMESTAMP))
        .order_by(finished_jobs.c.expires_at)
        .limit(param("most", sa.Integer))
        .with_for_update(skip_locked=True)
    )
    gone = sa.delete(finished_jobs).where(finished_jobs.c.id == sa.any_(sa.func.array(chosen.scalar_subquery())), fence)
    counted = gone.returning(finished_jobs.c.expires_at).cte("gone")
    return sa.select(sa.func.count().label("deleted"), sa.func.max(counted.c.expires_at).label("upto"))


def _is_over() -> tuple[sa.ColumnElement[bool], ...]:
    """Expired, and counted in the sums for good; what no leader has counted within an hour is not waited for."""
    summed = sa.select(leader.c.summed_until).where(leader.c.name == NAME).scalar_subquery()
    counted = sa.func.greatest(sa.func.coalesce(summed - interval("1 minute"), _NOW), _NOW - interval("1 hour"))
    return finished_jobs.c.expires_at <= _NOW, finished_jobs.c.finished_at <= counted
