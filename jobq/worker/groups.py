"""Kinds that are claimed together, since they have room together: those of an executor with few places apart.

A claim of all kinds at a time would be as small as the smallest room, or take jobs that wait here for a place while
other workers have one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jobq.executors import Bounded, Executor
from jobq.model import Claimed, Position
from jobq.worker.lanes import Lanes


class Room(Protocol):
    """How many more jobs of some kinds may be claimed."""

    @property
    def is_full(self) -> bool:
        """Whether there is none for the kinds that need it."""
        ...

    def part_of(self, room: int) -> int:
        """As many of `room` as there is room for."""
        ...

    def part_of_queue(self, queue: str, room: int) -> int:
        """The same, of this queue's own limit."""
        ...

    def without(self, kinds: Collection[str]) -> list[str]:
        """Those of the kinds that do not need it."""
        ...

    def hold(self, job: Claimed) -> None:
        """A job was claimed that needs it."""
        ...

    def release(self, job: Claimed) -> None:
        """That has ended, or does not begin here, or goes on without its handler."""
        ...


class Places:
    """The room of an executor that has places for so many jobs at a time. Counts from the claim on.

    One job more than there are places is held, for the next that is free; none where a job whose worker dies is dead.
    """

    def __init__(self, kinds: Collection[str], most: int) -> None:
        self.on_room: Callable[[str], None] = lambda _queue: None  # it was full, and has room again
        self._kinds = frozenset(kinds)
        self._most = most
        self._held = 0

    @property
    def is_full(self) -> bool:
        return self._held >= self._most

    def part_of(self, room: int) -> int:
        return max(0, min(room, self._most - self._held))

    def part_of_queue(self, queue: str, room: int) -> int:
        return room

    def without(self, kinds: Collection[str]) -> list[str]:
        return [kind for kind in kinds if kind not in self._kinds]

    def hold(self, job: Claimed) -> None:
        """A job was claimed."""
        self._held += 1

    def release(self, job: Claimed) -> None:
        """It has ended, or does not begin here."""
        was_full = self.is_full
        self._held -= 1
        if was_full:
            self.on_room(job.queue)


def places_of(executors: Mapping[str, Executor], handlers: Mapping[str, Any]) -> dict[str, Places]:
    """By kind, for the executors that have places for so many."""
    found: dict[str, Places] = {}
    for name, executor in executors.items():
        kinds = [kind for kind, handler in handlers.items() if handler.executor == name]
        if kinds and isinstance(executor, Bounded):
            spare = 0 if any(handlers[kind].settings.on_interrupt == "fail" for kind in kinds) else 1
            found |= dict.fromkeys(kinds, Places(kinds, executor.places + spare))
    return found


@dataclass(frozen=True, slots=True)
class Group:
    """Kinds, the room that they have, and how far each lane has been read for them."""

    kinds: Sequence[str]
    room: Room
    lanes: Lanes

    @property
    def kinds_now(self) -> Sequence[str]:
        """Without those that would wait here: other workers may have room for them."""
        return self.room.without(self.kinds) if self.room.is_full else self.kinds


class Groups:
    """All that a worker claims. The lanes of each group are told the same."""

    def __init__(self, groups: Sequence[Group], source: random.Random | None = None) -> None:
        self._groups = list(groups)
        self._source = source or random.Random()

    def __iter__(self) -> Iterator[Group]:
        """In a random order: the first may take what room the worker has."""
        return iter(self._source.sample(self._groups, len(self._groups)))

    @property
    def queues(self) -> frozenset[str]:
        return self._groups[0].lanes.queues

    @property
    def weight(self) -> int:
        """Of all queues together."""
        return self._groups[0].lanes.weight

    @property
    def kinds_now(self) -> list[str]:
        """Of all groups."""
        return [kind for group in self._groups for kind in group.kinds_now]

    def serve(self, weights: Mapping[str, int]) -> None:
        for group in self._groups:
            group.lanes.serve(weights)

    def add(self, queue: str) -> None:
        for group in self._groups:
            group.lanes.add(queue)

    def set_back(self, position: Position) -> None:
        for group in self._groups:
            group.lanes.set_back(position)

    def forget(self) -> None:
        for group in self._groups:
            group.lanes.forget()


def groups_of(kinds: Sequence[str], places: Mapping[str, Places], others: Room) -> Groups:
    """A group for each executor with places, and one of all other kinds, whose room is `others`."""
    apart = list(dict.fromkeys(places.values()))
    rest = [kind for kind in kinds if kind not in places]
    found = [Group([kind for kind in kinds if places.get(kind) is one], one, Lanes()) for one in apart]
    if rest or not found:
        found.append(Group(rest, others, Lanes()))
    return Groups(found)
