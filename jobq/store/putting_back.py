"""Making claimed jobs pending again: after a failure or a snooze, or given back at no cost."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from jobq.model import Position
from jobq.statements import put_back as statements
from jobq.store.announcing import announce
from jobq.store.ending import Ending, Fence, freed_binds, held_binds


def put_back(connection: sa.Connection, ending: Ending) -> bool:
    """Make a job pending again, after its delay; False when it was no longer ours. One statement, also with a slot."""
    if ending.slot_wait is None:
        return connection.execute(statements.put_back(), _back(ending)).first() is not None
    binds = {**_back(ending), **freed_binds(ending)}
    return connection.execute(statements.put_back_limited(), binds).first() is not None


def pause_and_put_back(connection: sa.Connection, ending: Ending, *, queue: str, channel: str) -> tuple[bool, bool]:
    """Pause the job's queue and put the job back: whether it was still ours, and whether a pause began. One statement.

    The pause holds also when the job was not ours any more: what the handler saw is true.
    """
    assert ending.pause is not None
    binds = {
        **_back(ending),
        **freed_binds(ending),
        "the_queue": queue,
        "pause_seconds": ending.pause.total_seconds(),
        "reason": ending.pause_reason,
        "channel": channel,
    }
    row = connection.execute(statements.pause_and_put_back(), binds).one()
    return row.id is not None, row.began


def give_back(connection: sa.Connection, fences: Iterable[Fence], *, channel: str | None) -> set[int]:
    """Make held jobs of one worker pending at no cost, and say so; returns the ids that were still its own."""
    ordered = sorted(fences, key=lambda fence: fence.id)
    if not ordered:
        return set()
    rows = connection.execute(statements.give_back(), held_binds(ordered)).all()
    announce(connection, [Position(row.queue, row.priority, row.run_at) for row in rows], channel=channel)
    return {row.id for row in rows}


def give_back_unknown(
    connection: sa.Connection, *, worker_id: int, held: Iterable[Fence], channel: str | None
) -> list[Position]:
    """Make pending what a claim with a lost answer has taken: all of this worker's jobs but those `held`.

    By id and attempt: what was taken from a handler that still runs may have been claimed anew.
    """
    known = sorted((fence.id, fence.attempt) for fence in held)
    binds = {"me": worker_id, "ids": [id_ for id_, _ in known], "attempts": [attempt for _, attempt in known]}
    rows = connection.execute(statements.give_back_unknown(), binds).all()
    positions = [Position(row.queue, row.priority, row.run_at) for row in rows]
    announce(connection, positions, channel=channel)
    return positions


def _back(ending: Ending) -> dict[str, object]:
    delay = None if ending.delay is None else ending.delay.total_seconds()
    return {**ending.fence.binds(), "delay": delay, "error": ending.error}
