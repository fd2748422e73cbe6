"""Claimed jobs that wait for a free slot of the worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from jobq.worker.held import Held
from jobq.worker.lanes import PRIORITIES

WITH_SLOT, WITHOUT = 0, 1  # of their queue: the lines of each priority


class Buffer:
    """Smaller priority numbers first, then in the order of the claims; jobs that have a slot of their queue before all
    others of their priority, since they keep it from everybody meanwhile."""

    def __init__(self) -> None:
        self._lines: tuple[deque[Held], ...] = tuple(deque() for _ in PRIORITIES for _ in (WITH_SLOT, WITHOUT))
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def oldest(self) -> float | None:
        """When the job that has waited longest was claimed, by the monotonic clock; None: there is none."""
        return min((line[0].started for line in self._lines if line), default=None)

    @property
    def last_priority(self) -> int | None:
        """The priority of the job that would start last; None: there is none."""
        return next((line[0].job.priority for line in reversed(self._lines) if line), None)

    def put(self, held: Held) -> None:
        job = held.job
        self._lines[2 * job.priority + (WITHOUT if job.slot is None else WITH_SLOT)].append(held)
        self._length += 1

    def take(self) -> Held | None:
        """The next to start."""
        for line in self._lines:
            if line:
                self._length -= 1
                return line.popleft()
        return None

    def remove(self, which: Callable[[Held], bool]) -> list[Held]:
        """Take out those; they will not start."""
        removed = [held for line in self._lines for held in line if which(held)]
        gone = set(removed)
        self._lines = tuple(deque(held for held in line if held not in gone) for line in self._lines)
        self._length -= len(removed)
        return removed
