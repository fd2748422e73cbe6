"""The leader's row: one worker at a time is in office, under a term number that is never given twice.

A lock of the session would not work behind a transaction pooler; a row with a lease does.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from jobq.statements.binds import ONE, param, seconds
from jobq.tables import leader

NAME = sa.literal_column("'maintenance'", sa.Text)
_NOW = sa.func.now()


@cache
def look() -> sa.Executable:
    """For how many seconds the office is taken. Locks nothing: every worker looks. No row: nobody was ever in it."""
    left = sa.cast(sa.extract("epoch", leader.c.lease_until - _NOW), sa.Double)
    return sa.select(left.label("seconds")).where(leader.c.name == NAME)


@cache
def take() -> sa.Executable:
    """Take the office, if it is free, under the next term. Binds: me, lease_seconds. No row back: it is not free."""
    me, until = param("me", sa.BigInteger), _NOW + seconds("lease_seconds")
    insert = pg.insert(leader).values(name=NAME, worker_id=me, term=ONE, lease_until=until)
    changed: dict[str, Any] = {"worker_id": me, "term": leader.c.term + ONE, "lease_until": until}
    taken = insert.on_conflict_do_update(
        index_elements=[leader.c.name], set_=changed, where=leader.c.lease_until <= _NOW
    )
    return taken.returning(leader.c.term)


@cache
def renew() -> sa.Executable:
    """Stay in office. Binds: me, the_term, lease_seconds. No row back: deposed, or too late."""
    return (
        sa.update(leader).where(*_mine()).values(lease_until=_NOW + seconds("lease_seconds")).returning(leader.c.term)
    )


@cache
def resign() -> sa.Executable:
    """Leave the office to whoever looks next. Binds: me.

    Waits for no lock: a worker on its way out has a second, and else the lease runs out.
    """
    row = sa.select(leader.c.name).where(leader.c.worker_id == param("me", sa.BigInteger))
    free = row.with_for_update(skip_locked=True).scalar_subquery()
    return sa.update(leader).where(leader.c.name == free).values(worker_id=sa.null(), lease_until=_NOW)


def in_office() -> sa.ColumnElement[bool]:
    """The fence of everything that the leader does: a condition of the writing statement itself. Binds: me, the_term.

    The share lock holds off a successor until the statement's transaction is over.
    """
    row = sa.select(leader.c.term).where(*_mine()).with_for_update(read=True)
    return param("the_term", sa.BigInteger) == row.scalar_subquery()


def summing(until: sa.ColumnElement[Any]) -> sa.Update:
    """Note up to when minutes are summed; a row back only while in office, as of `in_office`. Binds: me, the_term."""
    later = sa.func.greatest(leader.c.summed_until, until)
    return sa.update(leader).where(*_mine()).values(summed_until=later).returning(leader.c.term)


def _mine() -> tuple[sa.ColumnElement[bool], ...]:
    return (
        leader.c.name == NAME,
        leader.c.worker_id == param("me", sa.BigInteger),
        leader.c.term == param("the_term", sa.BigInteger),
        leader.c.lease_until > _NOW,
    )
