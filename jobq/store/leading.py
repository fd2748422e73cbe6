"""The leader's office, and what is done in it: sums by the minute, and cleaning."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from jobq.statements import leader as statements
from jobq.statements import sums


@dataclass(frozen=True, slots=True)
class Office:
    """The right to maintain, as long as its row says the same: what every write of the leader is fenced by."""

    worker_id: int
    term: int

    def binds(self) -> dict[str, int]:
        return {"me": self.worker_id, "the_term": self.term}


def taken_for(connection: sa.Connection) -> float:
    """For how many seconds the office is taken if its holder does not renew it; 0: it is free. In autocommit."""
    left = connection.execute(statements.look()).scalar_one_or_none()
    return max(0.0, left or 0.0)


def campaign(connection: sa.Connection, worker_id: int, lease: timedelta) -> Office | None:
    """Take the office if nobody is in it. In autocommit."""
    binds = {"me": worker_id, "lease_seconds": lease.total_seconds()}
    row = connection.execute(statements.take(), binds).first()
    return None if row is None else Office(worker_id, row.term)


def renew(connection: sa.Connection, office: Office, lease: timedelta) -> bool:
    """Stay in office; False when it was lost."""
    binds = {**office.binds(), "lease_seconds": lease.total_seconds()}
    return connection.execute(statements.renew(), binds).first() is not None


@dataclass(frozen=True, slots=True)
class Summed:
    """Minutes that were summed up to `until`; `is_last`: there are no more for now."""

    until: datetime | None
    is_last: bool


def sum_up(connection: sa.Connection, office: Office) -> Summed:
    """Sum the next minutes that have ended, ten at most. In one transaction; once deposed it does nothing."""
    connection.execute(sums.prepare())
    window = connection.execute(sums.window()).one_or_none()
    if window is None:
        return Summed(None, True)
    binds = {"since": window.since, "until": window.until, **office.binds()}
    if connection.execute(sums.sum_minutes(), binds).first() is None:
        return Summed(None, True)
    connection.execute(sums.sum_hours(), binds)
    return Summed(window.until, window.is_last)
