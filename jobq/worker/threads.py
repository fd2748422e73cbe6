"""How many more jobs a worker may claim that need a thread: what would wait here for one is better left to others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from jobq.executors import Executor, ThreadExecutor
from jobq.executors.limits import ThreadLimits
from jobq.model import Claimed


class ThreadRoom:
    """Counts from the claim on. A handler that was left behind keeps its thread until it has ended."""

    def __init__(self, executors: Mapping[str, Executor], handlers: Mapping[str, Any]) -> None:
        executor = executors.get("thread")
        self._executor = executor if isinstance(executor, ThreadExecutor) else None
        self._limits = ThreadLimits() if self._executor is None else self._executor.limits
        self.needing = {kind for kind, each in handlers.items() if each.executor == "thread" and self._limits.are_set}
        self._held: Counter[str] = Counter()
        self.on_room: Callable[[str], None] = lambda _queue: None  # a queue or the worker was full, and has room again
        if self._executor is not None:
            self._executor.on_late_end = lambda queue: self.on_room(queue)

    @property
    def is_full(self) -> bool:
        """Whether no job may be claimed that needs a thread."""
        return self.part_of(1) == 0

    def part_of(self, room: int) -> int:
        """As many of `room` as there are threads for."""
        most = self._limits.most
        return room if most is None else max(0, min(room, most - self._held.total() - self._left_behind().total()))

    def part_of_queue(self, queue: str, room: int) -> int:
        """The same, of this queue's own limit."""
        limit = self._limits.of(queue)
        return room if limit is None else max(0, min(room, limit - self._held[queue] - self._left_behind()[queue]))

    def without(self, kinds: Collection[str]) -> list[str]:
        """Those of the kinds that need no thread."""
        return [kind for kind in kinds if kind not in self.needing]

    def hold(self, job: Claimed) -> None:
        """A job was claimed."""
        self._held[job.queue] += 1

    def release(self, job: Claimed) -> None:
        """It has ended, or goes on without its handler."""
        was_full = self.part_of_queue(job.queue, 1) == 0 or self.is_full
        self._held[job.queue] -= 1
        if was_full:
            self.on_room(job.queue)

    def are_all_lost(self, queue: str) -> bool:
        """Whether all threads of the worker, or of this queue, are those of handlers that were left behind."""
        lost = self._left_behind()
        return lost.total() == self._limits.most or lost[queue] == self._limits.of(queue)

    def _left_behind(self) -> Counter[str]:
        return Counter() if self._executor is None else Counter(self._executor.left_behind.values())
