"""Ending claimed jobs, and giving them back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from jobq.model import Position, State
from jobq.statements import finish as statements
from jobq.statements import put_back as back_statements
from jobq.statements import recorded as recorded_statements
from jobq.statements import slots as slot_statements
from jobq.store.rows import raw_rows

_PLACES = '{{"{}"}}'  # an array, as text


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
    """What is to be written about one job. `error`: JSON text of the failed attempt, None where none is counted.

    `slot_wait`: the job has a slot, that is ready again after so long; None: it has none, or keeps it.
    `pause`: its queue stands still for so long. `result`: JSON text, of a job that ends.
    """

    fence: Fence
    state: State
    outcome: str | None = None
    error: str | None = None
    delay: timedelta | None = None
    keep: timedelta = timedelta(0)
    slot_wait: timedelta | None = None
    pause: timedelta | None = None
    pause_reason: str | None = None
    result: str | None = None


def finish(connection: sa.Connection, endings: Sequence[Ending]) -> set[int]:
    """Move jobs of one worker to finished_jobs; returns the ids that were still its own. One statement."""
    ordered = sorted(endings, key=lambda ending: ending.fence.id)
    return set(connection.execute(statements.finish(), _ends(ordered)).scalars())


def finish_done(
    connection: sa.Connection,
    ids: Sequence[int],
    attempts: Sequence[int],
    places: Sequence[str],
    outcomes: Sequence[str | None],
    *,
    worker_id: int,
    keep: timedelta,
) -> set[int] | None:
    """`finish` for jobs that ended well and are kept for the same time, by ascending id; `places`: as claimed.

    None: all were still ours. Else the ids of those that were. One statement; one more when some were not where they
    had been claimed: written since (what a handler reports does that, and a rewrite of the table), or not ours.
    """
    binds = {
        "worker_id": worker_id,
        "ids": list(ids),
        "attempts": list(attempts),
        "places": _PLACES.format('","'.join(places)),
        "outcomes": outcomes if any(outcomes) else None,
        "keep": keep.total_seconds(),
    }
    number, mine = raw_rows(connection, statements.finish_done(), binds)[0]
    if number == len(ids):
        return None
    there = set(mine or ())
    rest = [
        Ending(Fence(id_, attempt, worker_id), State.DONE, outcome, keep=keep)
        for id_, attempt, outcome in zip(ids, attempts, outcomes, strict=True)
        if id_ not in there
    ]
    return there | finish(connection, rest)


def finish_limited(connection: sa.Connection, ending: Ending) -> bool:
    """Move a job of a limited queue to finished_jobs and free its slot; False: it was no longer ours. One statement."""
    binds = {**_ends([ending]), **_freed(ending)}
    return connection.execute(statements.finish_limited(), binds).first() is not None


def put_back(connection: sa.Connection, ending: Ending) -> bool:
    """Make a job pending again, after its delay; False when it was no longer ours. One statement, also with a slot."""
    if ending.slot_wait is None:
        return connection.execute(back_statements.put_back(), _back(ending)).first() is not None
    binds = {**_back(ending), **_freed(ending)}
    return connection.execute(back_statements.put_back_limited(), binds).first() is not None


def pause_and_put_back(connection: sa.Connection, ending: Ending, *, queue: str, channel: str) -> tuple[bool, bool]:
    """Pause the job's queue and put the job back: whether it was still ours, and whether a pause began. One statement.

    The pause holds also when the job was not ours any more: what the handler saw is true.
    """
    assert ending.pause is not None
    binds = {
        **_back(ending),
        **_freed(ending),
        "the_queue": queue,
        "pause_seconds": ending.pause.total_seconds(),
        "reason": ending.pause_reason,
        "channel": channel,
    }
    row = connection.execute(back_statements.pause_and_put_back(), binds).one()
    return row.id is not None, row.began


def free_slot(connection: sa.Connection, fence: Fence, wait: timedelta) -> bool:
    """Free the slot of an attempt that has ended already, or was lost; False: it has none."""
    binds = {**fence.binds(), "wait": wait.total_seconds()}
    return connection.execute(slot_statements.free_slot(), binds).first() is not None


def recorded(connection: sa.Connection, fences: Iterable[Fence]) -> set[int]:
    """Of ends of one worker that may have been written before (the answer was lost), the ids of those that were."""
    ordered = sorted(fences, key=lambda fence: fence.id)
    return set(connection.execute(recorded_statements.recorded(), held_binds(ordered)).scalars())


def was_put_back(connection: sa.Connection, ending: Ending) -> bool:
    """Whether this job went back by this ending, written by an earlier try whose answer was lost."""
    probe = "[]" if ending.error is None else json.dumps([{"attempt": ending.fence.attempt}])
    binds = {"the_id": ending.fence.id, "the_attempt": ending.fence.attempt, "probe": probe}
    return connection.execute(recorded_statements.was_put_back(), binds).first() is not None


def give_back(connection: sa.Connection, fences: Iterable[Fence], *, channel: str | None) -> set[int]:
    """Make held jobs of one worker pending at no cost, and say so; returns the ids that were still its own."""
    ordered = sorted(fences, key=lambda fence: fence.id)
    if not ordered:
        return set()
    rows = connection.execute(back_statements.give_back(), held_binds(ordered)).all()
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
    rows = connection.execute(back_statements.give_back_unknown(), binds).all()
    positions = [Position(row.queue, row.priority, row.run_at) for row in rows]
    announce(connection, positions, channel=channel)
    return positions


def set_outcome(connection: sa.Connection, fence: Fence, outcome: str | None, result: str | None = None) -> bool:
    """Write the text, and the result, of a job that completed in its own transaction."""
    binds = {**fence.binds(), "outcome": outcome, "result": result}
    return connection.execute(statements.set_outcome(), binds).first() is not None


def settle(connection: sa.Connection, fence: Fence) -> bool:
    """Whether a COMMIT without an answer has ended this job as done. In one transaction, read committed.

    First the row that it would have deleted, locked: that waits for a commit still in flight. Then the other table.
    """
    if connection.execute(recorded_statements.lock_held(), fence.binds()).first() is not None:
        return False
    return connection.execute(recorded_statements.ended_by_us(), fence.binds()).first() is not None


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
        connection.execute(back_statements.announce(), binds)


def _ends(ordered: Sequence[Ending]) -> dict[str, object]:
    results = [ending.result for ending in ordered]
    return {
        **held_binds([ending.fence for ending in ordered]),
        "states": [ending.state.value for ending in ordered],
        "outcomes": [ending.outcome for ending in ordered],
        "errors": [ending.error for ending in ordered],
        "keeps": [ending.keep.total_seconds() for ending in ordered],
        "results": results if any(results) else None,
    }


def _back(ending: Ending) -> dict[str, object]:
    delay = None if ending.delay is None else ending.delay.total_seconds()
    return {**ending.fence.binds(), "delay": delay, "error": ending.error}


def _freed(ending: Ending) -> dict[str, object]:
    wait = ending.slot_wait or timedelta(0)
    return {**ending.fence.binds(), "wait": wait.total_seconds()}


def held_binds(ordered: Sequence[Fence]) -> dict[str, object]:
    """The fence for many jobs of one worker, by ascending id."""
    return {
        "worker_id": ordered[0].worker_id,
        "ids": [fence.id for fence in ordered],
        "attempts": [fence.attempt for fence in ordered],
    }
