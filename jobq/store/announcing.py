"""Telling the fleet where it is worth to look."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from jobq.model import Position
from jobq.statements import notify as statements


def announce(connection: sa.Connection, positions: Iterable[Position], *, channel: str | None) -> None:
    """Notify the fleet of the earliest position of each lane; no channel, no word."""
    earliest: dict[tuple[str, int], Position] = {}
    for position in positions:
        lane = position.queue, position.priority
        if lane not in earliest or position.run_at < earliest[lane].run_at:
            earliest[lane] = position
    if earliest and channel is not None:
        told = list(earliest.values())
        binds = {
            "channel": channel,
            "queues": [position.queue for position in told],
            "priorities": [position.priority for position in told],
            "run_ats": [position.run_at for position in told],
        }
        connection.execute(statements.announce(), binds)
