"""Ending claimed jobs, and giving them back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from jobq.model import Position, State
from jobq.statements import finish as statements


@dataclass(frozen=True, slots=True)
class Fence:
    """What every write to a claimed job is compared with."""

    id: int
    attempt: int
    worker_id: int

    def binds(self) -> dict[str, int]:
        return {"the_id": self.id, "the_attempt": self.attempt, "the_worker_id": self.worker_id}


@dataclass(frozen=True, slots=True)
class Ending:
    """What is to be written about one job. `error`: JSON text of the failed attempt, None where none is counted."""

    fence: Fence
    state: State
    outcome: str | None = None
    error: str | None = None
    delay: timedelta | None = None
    keep: timedelta = timedelta(0)


def finish(connection: sa.Connection, endings: Sequence[Ending]) -> set[int]:
    """Move jobs of one worker to finished_jobs; returns the ids that were still its own. One statement."""
    ordered = sorted(endings, key=lambda ending: ending.fence.id)
    binds = {
        **_held([ending.fence for ending in ordered]),
        "states": [ending.state.value for ending in ordered],
        "outcomes": [ending.outcome for ending in ordered],
        "errors": [ending.error for ending in ordered],
        "keeps": [ending.keep.total_seconds() for ending in ordered],
    }
    return set(connection.execute(statements.finish(), binds).scalars())


def put_back(connection: sa.Connection, ending: Ending) -> bool:
    """Make a job pending again, after its delay; False when it was no longer ours. One statement."""
    delay = None if ending.delay is None else ending.delay.total_seconds()
    binds = {**ending.fence.binds(), "delay": delay, "error": ending.error}
    return connection.execute(statements.put_back(), binds).first() is not None


def recorded(connection: sa.Connection, endings: Sequence[Ending]) -> set[int]:
    """Of endings of one worker that may have been written before (the answer was lost), the ids of those that were."""
    ordered = sorted((ending.fence for ending in endings), key=lambda fence: fence.id)
    return set(connection.execute(statements.recorded(), _held(ordered)).scalars())


def was_put_back(connection: sa.Connection, ending: Ending) -> bool:
    """Whether this job went back by this ending, written by an earlier try whose answer was lost."""
    probe = "[]" if ending.error is None else json.dumps([{"attempt": ending.fence.attempt}])
    binds = {"the_id": ending.fence.id, "the_attempt": ending.fence.attempt, "probe": probe}
    return connection.execute(statements.was_put_back(), binds).first() is not None


def give_back(connection: sa.Connection, fences: Iterable[Fence], *, channel: str | None) -> set[int]:
    """Make held jobs of one worker pending at no cost, and say so; returns the ids that were still its own."""
    ordered = sorted(fences, key=lambda fence: fence.id)
    if not ordered:
        return set()
    rows = connection.execute(statements.give_back(), _held(ordered)).all()
    announce(connection, [Position(row.queue, row.priority, row.run_at) for row in rows], channel=channel)
    return {row.id for row in rows}


def give_back_unknown(
    connection: sa.Connection, *, worker_id: int, held: Iterable[int], channel: str | None
) -> list[Position]:
    """Make pending what a claim with a lost answer has taken: all of this worker's jobs but those `held`."""
    rows = connection.execute(statements.give_back_unknown(), {"me": worker_id, "ids": list(held)}).all()
    positions = [Position(row.queue, row.priority, row.run_at) for row in rows]
    announce(connection, positions, channel=channel)
    return positions


def set_outcome(connection: sa.Connection, fence: Fence, outcome: str) -> bool:
    """Write the text of a job that completed in its own transaction."""
    return connection.execute(statements.set_outcome(), {**fence.binds(), "outcome": outcome}).first() is not None


def settle(connection: sa.Connection, fence: Fence) -> bool:
    """Whether a COMMIT without an answer has ended this job as done. In one transaction, read committed.

    First the row that it would have deleted, locked: that waits for a commit still in flight. Then the other table.
    """
    if connection.execute(statements.lock_held(), fence.binds()).first() is not None:
        return False
    return connection.execute(statements.ended_by_us(), fence.binds()).first() is not None


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


def _held(ordered: Sequence[Fence]) -> dict[str, object]:
    return {
        "worker_id": ordered[0].worker_id,
        "ids": [fence.id for fence in ordered],
        "attempts": [fence.attempt for fence in ordered],
    }
