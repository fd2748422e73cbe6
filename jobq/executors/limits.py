"""How many functions may run in threads at a time: in the worker, and of each queue there."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Mapping

from jobq.queue_settings import QueueSettings


class ThreadLimits:
    """Threads are given out in the order of asking; one who may not have one yet is passed by others that may.

    `most` None: no limit of the worker's own. Of a queue: what the code says (`threads`), of this process alone.
    """

    def __init__(self, most: int | None = None, queues: Mapping[str, QueueSettings] | None = None) -> None:
        self.most = most
        self._queues = queues if queues is not None else {}
        self._taken: Counter[str] = Counter()
        self._total = 0
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()

    @property
    def are_set(self) -> bool:
        """Whether there is any."""
        return self.most is not None or any(each.threads is not None for each in self._queues.values())

    def of(self, queue: str) -> int | None:
        """The limit of a queue, None without one."""
        settings = self._queues.get(queue)
        return None if settings is None else settings.threads

    def take(self, queue: str) -> bool:
        """Take a thread, if there is one for this queue."""
        if self._queues or self.most is not None:  # else there is nothing to compare with
            limit = self.of(queue)
            if (self.most is not None and self._total >= self.most) or (
                limit is not None and self._taken[queue] >= limit
            ):
                return False
        self._taken[queue] += 1
        self._total += 1
        return True

    async def wait(self, queue: str) -> None:
        """Wait for a thread; with it taken when this returns."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((queue, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(queue)  # it was given in the moment of the cancel
            else:
                self._waiting.remove((queue, turn))
            raise

    def give_back(self, queue: str) -> None:
        """A thread has ended what it did: the next one who may have it gets it."""
        self._taken[queue] -= 1
        self._total -= 1
        if not self._waiting:
            return
        for waiting in list(self._waiting):
            name, turn = waiting
            if self.take(name):
                self._waiting.remove(waiting)
                turn.set_result(None)
                return
