"""When a worker has had enough: of too many handlers that could not be stopped only a new process gets rid."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from jobq.executors.patience import AwakeTimer
from jobq.worker.left_behind import LeftBehind
from jobq.worker.threads import ThreadRoom

logger = logging.getLogger("jobq.worker")


class Wear:
    """Told of each handler that is left behind; ends the worker with the one that is too much."""

    def __init__(
        self,
        left_behind: LeftBehind,
        threads: ThreadRoom,
        end: Callable[[], None],
        *,
        most: int,
        patience: timedelta,
    ) -> None:
        self.is_out = False
        self._left_behind = left_behind
        self._threads = threads
        self._end = end
        self._most = most
        self._patience = patience
        left_behind.on_new = self.one_more

    def one_more(self, queue: str) -> None:
        """Where they have all the threads that there are, they may still end by themselves for a while."""
        if len(self._left_behind.ids) > self._most:
            self._wear_out(f"more than max_left_behind ({self._most})")
        elif self._threads.are_all_lost(queue):
            AwakeTimer(self._patience.total_seconds(), self._look_again, queue)

    def _look_again(self, queue: str) -> None:
        if self._threads.are_all_lost(queue):
            self._wear_out(f"no thread is left for queue {queue}")

    def _wear_out(self, reason: str) -> None:
        if self.is_out:
            return
        self.is_out = True
        number = len(self._left_behind.ids)
        logger.error("handlers left behind and still running: %d, %s: the worker ends", number, reason)
        self._end()
