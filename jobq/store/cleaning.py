"""Deleting what has been kept for its time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from jobq.statements import clean as statements
from jobq.store.leading import Office

KEEP_SUMS = {1: timedelta(days=2), 60: timedelta(days=365)}  # of minutes, of hours
START = datetime(1, 1, 2, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Chunk:
    """How many jobs were deleted, and where the next chunk starts."""

    deleted: int
    upto: datetime


def delete_expired(connection: sa.Connection, *, since: datetime, most: int, office: Office | None = None) -> Chunk:
    """Delete up to `most` expired jobs, those that expired first. One statement, to be committed by itself.

    With an office only while it is held; without one it may be called by anybody.
    """
    binds = {"since": since, "most": most}
    if office is None:
        row = connection.execute(statements.delete_expired(), binds).one()
    else:
        row = connection.execute(statements.delete_expired_in_office(), {**binds, **office.binds()}).one()
    return Chunk(row.deleted, row.upto or since)


def delete_old_sums(connection: sa.Connection, office: Office) -> None:
    """Delete sums that have been kept for their time, while in office."""
    for minutes, keep in KEEP_SUMS.items():
        binds = {"minutes": minutes, "keep": keep.total_seconds(), **office.binds()}
        connection.execute(statements.delete_old_sums(), binds)


def count_expired(connection: sa.Connection) -> int:
    """How many jobs there are to delete."""
    return int(connection.execute(statements.count_expired()).scalar_one())
