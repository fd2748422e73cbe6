"""What is to be written of a claimed job; and ending it for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from jobq.model import State
from jobq.statements import finish as statements
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
    binds = {**_ends([ending]), **freed_binds(ending)}
    return connection.execute(statements.finish_limited(), binds).first() is not None


def free_slot(connection: sa.Connection, fence: Fence, wait: timedelta) -> bool:
    """Free the slot of an attempt that has ended already, or was lost; False: it has none."""
    binds = {**fence.binds(), "wait": wait.total_seconds()}
    return connection.execute(slot_statements.free_slot(), binds).first() is not None


def set_outcome(connection: sa.Connection, fence: Fence, outcome: str | None, result: str | None = None) -> bool:
    """Write the text, and the result, of a job that completed in its own transaction."""
    binds = {**fence.binds(), "outcome": outcome, "result": result}
    return connection.execute(statements.set_outcome(), binds).first() is not None


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


def freed_binds(ending: Ending) -> dict[str, object]:
    """What is to become of its slot."""
    wait = ending.slot_wait or timedelta(0)
    return {**ending.fence.binds(), "wait": wait.total_seconds()}


def held_binds(ordered: Sequence[Fence]) -> dict[str, object]:
    """The fence for many jobs of one worker, by ascending id."""
    return {
        "worker_id": ordered[0].worker_id,
        "ids": [fence.id for fence in ordered],
        "attempts": [fence.attempt for fence in ordered],
    }
