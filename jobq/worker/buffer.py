"""Claimed jobs that wait for a free slot of the worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from jobq.worker.held import Held
from jobq.worker.lanes import PRIORITIES


class Buffer:
    """Smaller priority numbers first, then in the order of the claims; jobs that have a slot of their queue before all
    others of their priority, since they keep it from everybody meanwhile."""

    def __init__(self) -> None:
        self._levels: tuple[deque[Held], ...] = tuple(deque() for _ in PRIORITIES)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def oldest(self) -> float | None:
        """When the job that has waited longest was claimed, by the monotonic clock; None: there is none."""
        return min((held.started for level in self._levels for held in level), default=None)

    @property
    def last_priority(self) -> int | None:
        """The priority of the job that would start last; None: there is none."""
        return next((priority for priority in reversed(PRIORITIES) if self._levels[priority]), None)

    def put(self, held: Held) -> None:
        level = self._levels[held.job.priority]
        if held.job.slot is None:
            level.append(held)
        else:
            level.appendleft(held)
        self._length += 1

    def take(self) -> Held | None:
        """The next to start."""
        for level in self._levels:
            if level:
                self._length -= 1
                return level.popleft()
        return None

    def remove(self, which: Callable[[Held], bool]) -> list[Held]:
        """Take out those; they will not start."""
        removed = [held for level in self._levels for held in level if which(held)]
        gone = set(removed)
        self._levels = tuple(deque(held for held in level if held not in gone) for level in self._levels)
        self._length -= len(removed)
        return removed
