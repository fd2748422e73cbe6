"""Reading what `jobq.stats` is put together from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from jobq.report import READY_LIMIT
from jobq.statements import stats as live
from jobq.statements import sums
from jobq.store.switching import interpreted, switched
from jobq.tally import RECENT_LIMIT, Counts
from jobq.tally import unknown_kinds as unknown_among

ROOM = 500  # for running jobs, which are read on the way to the last ready one that is counted


def counts(connection: sa.Connection) -> Counts:
    """Seven reads, each by an index and bounded, but for the sums of 24 hours."""
    with interpreted(connection):
        return _counts(connection)


def _counts(connection: sa.Connection) -> Counts:
    now = connection.execute(live.clock()).one()
    totals = connection.execute(sums.totals()).all()
    summed_until = totals[0].summed_until
    return Counts(
        at=now.at,
        live_workers=now.live_workers,
        left_behind=now.left_behind,
        known_kinds=now.known_kinds,
        summed_until=summed_until,
        waiting=_waiting(connection),
        dead=connection.execute(live.dead(), {"most": READY_LIMIT + 1}).all(),
        recent=_recent(connection, summed_until),
        known=connection.execute(live.known_queues()).all(),
        totals=[row for row in totals if row.queue is not None],
        durations=connection.execute(sums.durations()).all(),
        most_waiting=READY_LIMIT + ROOM,
        most_recent=RECENT_LIMIT,
    )


def _recent(connection: sa.Connection, since: datetime | None) -> Sequence[sa.Row[Any]]:
    """While nobody has analysed the table, the planner takes a BRIN for useless: it would read all that has ended."""
    with switched(connection, "enable_seqscan", "off"):
        return connection.execute(live.recent(), {"most": RECENT_LIMIT, "since": since}).all()


def unknown_kinds(connection: sa.Connection) -> dict[str, int]:
    """How many jobs wait for each kind that no live worker has a handler for, as far as they are counted."""
    now = connection.execute(live.clock()).one()
    return unknown_among(_waiting(connection), now.known_kinds)


def _waiting(connection: sa.Connection) -> Sequence[sa.Row[Any]]:
    return connection.execute(live.waiting(), {"most": READY_LIMIT + ROOM}).all()
