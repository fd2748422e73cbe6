"""Where a worker claims next: a cursor per lane, in memory. Decisions only, no I/O."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

from jobq.fairness import in_turns
from jobq.model import Claimed, Position
from jobq.store.claiming import Claim, LaneAsk
from jobq.worker.shares import Shares

PRIORITIES = (0, 1, 2, 3)
LATE = timedelta(seconds=5)  # a lane read to its end may still get rows of transactions that began a little earlier


class Cursor(NamedTuple):
    """The last place read in a lane."""

    run_at: datetime
    id: int


_LANE_OF = attrgetter("queue", "priority")
START = Cursor(datetime.min.replace(tzinfo=UTC), 0)  # not '-infinity': drivers differ


class Lanes:
    """The (queue, priority) pairs that a worker serves. A wrong cursor costs latency, never a job.

    While a worker has no thread left it asks for some of its kinds only (`is_narrow`), with cursors of their own: those
    of all kinds must not pass by what it did not ask for.
    """

    def __init__(self, source: random.Random | None = None) -> None:
        self._weights: dict[str, int] = {}
        self._wide: dict[tuple[str, int], Cursor] = {}
        self._narrow: dict[tuple[str, int], Cursor] = {}
        self._cursors = self._wide  # those of the last claim
        self._told: dict[tuple[str, int], Cursor] = {}  # while a claim is in flight, which may not have seen that yet
        self._shares = Shares(source or random.Random())

    @property
    def queues(self) -> frozenset[str]:
        return frozenset(self._weights)

    @property
    def has_more(self) -> bool:
        """Whether the last claim left room that another one would fill."""
        return self._shares.has_more

    @property
    def weight(self) -> int:
        """Of all queues together."""
        return sum(self._weights.values())

    def serve(self, weights: Mapping[str, int]) -> None:
        """Serve these queues from now on; the cursors of those that stay are kept."""
        self._weights = dict(weights)
        self._shares.forget(weights)

    def add(self, queue: str) -> None:
        """Serve one queue more."""
        self._weights.setdefault(queue, 1)

    def ask(
        self, room: int, *, part_of: Callable[[str, int], int] | None = None, is_narrow: bool = False
    ) -> list[LaneAsk]:
        """The lanes of the next claim: queues in a random order by weight, with their shares, priorities in theirs.

        `part_of(queue, room)`: how much of the room this queue may take here; with 0 it is not asked for.
        """
        self._told.clear()
        self._cursors = self._narrow if is_narrow else self._wide
        weights = self._weights
        if part_of is not None:
            weights = {queue: weight for queue, weight in weights.items() if part_of(queue, room)}
            self._shares.forget(weights)
        return [
            LaneAsk(queue, priority, cursor.run_at, cursor.id, part_of(queue, limit) if part_of else limit)
            for queue, limit in self._shares.ask(weights, room).items()
            for priority in PRIORITIES[: self._shares.lowest(queue) + 1]
            for cursor in (self._cursors.get((queue, priority), START),)
        ]

    def ask_above(
        self, priority: int, room: int, *, part_of: Callable[[str, int], int], is_narrow: bool
    ) -> list[LaneAsk]:
        """The lanes of a claim of more urgent jobs than those of `priority`; the rest as for `ask`."""
        self._told.clear()
        self._cursors = self._narrow if is_narrow else self._wide
        limits = {queue: part_of(queue, room) for queue in self._weights}
        return [
            LaneAsk(queue, level, cursor.run_at, cursor.id, limit)
            for queue, limit in limits.items()
            if limit
            for level in PRIORITIES[:priority]
            for cursor in (self._cursors.get((queue, level), START),)
        ]

    def absorb(self, asked: Iterable[LaneAsk], claim: Claim, *, room: int) -> None:
        """Note who filled its share, and move the cursors behind what a claim gave."""
        reached = self._move(asked, claim, room)
        self._shares.absorb(reached, is_full=len(claim.jobs) >= room)

    def absorb_above(self, asked: Iterable[LaneAsk], claim: Claim, *, room: int) -> None:
        """The same for the answer to `ask_above`, which says nothing of shares."""
        self._move(asked, claim, room)

    def _move(self, asked: Iterable[LaneAsk], claim: Claim, room: int) -> dict[tuple[str, int], bool]:
        """A lane that gave fewer than asked was read to its end, if it was reached at all: lanes are read in order
        until the claim is full."""
        lanes = list(map(_LANE_OF, claim.jobs))
        last, given = dict(zip(lanes, claim.jobs, strict=True)), Counter(lanes)
        reached = _reached(asked, given, is_full=len(claim.jobs) >= room)
        at_end = Cursor(claim.now - LATE, 0)
        for lane, is_read_to_end in reached.items():
            job = last.get(lane)
            cursor = self._cursors.get(lane, START) if job is None else Cursor(job.run_at, job.id)
            read = max(cursor, at_end) if is_read_to_end else cursor
            self._cursors[lane] = min(read, self._told.get(lane, read))
        if any(cursor.run_at > claim.now for cursor in self._cursors.values()):
            self.forget()  # the database's clock was set back
        return reached

    def in_turns(self, jobs: Sequence[Claimed]) -> Sequence[Claimed]:
        """The order for them to start in: what waits of a flood must not go before all of another queue."""
        return in_turns(jobs, self._weights)

    def set_back(self, position: Position) -> None:
        """Something became due here: look again from just before it. Positions are hints and never move forward."""
        lane = position.queue, position.priority
        before = Cursor(position.run_at - timedelta(microseconds=1), 0)
        self._told[lane] = min(self._told.get(lane, before), before)
        for cursors in (self._wide, self._narrow):
            if lane in cursors:
                cursors[lane] = min(cursors[lane], before)

    def forget(self) -> None:
        """Start from the beginning of every lane: a sweep."""
        self._wide.clear()
        self._narrow.clear()


def _reached(
    asked: Iterable[LaneAsk], given: Mapping[tuple[str, int], int], *, is_full: bool
) -> dict[tuple[str, int], bool]:
    """The lanes that were read, and whether each was read to its end."""
    to_end = {(ask.queue, ask.priority): given.get((ask.queue, ask.priority), 0) < ask.limit for ask in asked}
    if not is_full:
        return to_end
    final = max(index for index, lane in enumerate(to_end) if lane in given)
    return {lane: index < final and whole for index, (lane, whole) in enumerate(to_end.items()) if index <= final}
