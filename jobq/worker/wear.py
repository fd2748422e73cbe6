"""When a worker has had enough: of too many handlers that could not be stopped only a new process gets rid."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from jobq.executors.patience import AwakeTimer
from jobq.worker.runner import Runner

logger = logging.getLogger("jobq.worker")


class Wear:
    """Told of each handler that is left behind; ends the worker with the one that is too much."""

    def __init__(self, runner: Runner, end: Callable[[], None], *, most: int, patience: timedelta) -> None:
        self.is_out = False
        self._runner = runner
        self._end = end
        self._most = most
        self._patience = patience
        runner.on_left_behind = self.left_behind

    def left_behind(self, queue: str) -> None:
        """One more. Where they have all the threads that there are, they may still end by themselves for a while."""
        if len(self._runner.left_behind) > self._most:
            self._wear_out(f"more than max_left_behind ({self._most})")
        elif self._runner.threads.are_all_lost(queue):
            AwakeTimer(self._patience.total_seconds(), self._look_again, queue)

    def _look_again(self, queue: str) -> None:
        if self._runner.threads.are_all_lost(queue):
            self._wear_out(f"no thread is left for queue {queue}")

    def _wear_out(self, reason: str) -> None:
        if self.is_out:
            return
        self.is_out = True
        number = len(self._runner.left_behind)
        logger.error("handlers left behind and still running: %d, %s: the worker ends", number, reason)
        self._end()
