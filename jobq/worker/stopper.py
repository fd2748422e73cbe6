"""Tells a job to stop, once: it is cancelled, has a second for its own clean-up, and is left behind after that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from jobq.executors.patience import AwakeTimer
from jobq.verdict import Ended
from jobq.worker.held import TAKEN, Held, Stop
from jobq.worker.left_behind import LeftBehind

PATIENCE_SECONDS = 1.0  # what a stopped handler has for its own clean-up before it is left behind


class Stopper:
    """Whoever runs the jobs is told of each that is settled by that (`settle`), or never begins."""

    def __init__(
        self,
        left_behind: LeftBehind,
        *,
        settle: Callable[[Held, Ended], None],
        never_begins: Callable[[Held], None],
    ) -> None:
        self._left_behind = left_behind
        self._settle = settle
        self._never_begins = never_begins

    def stop(self, held: Held, reason: Stop) -> None:
        """The first reason stays."""
        if held.settled or held.stop is not None:
            return
        held.stop = reason
        if held.task is None:
            self._never_begins(held)
            return
        if held.context is not None:
            held.context.cancel()
            if reason in TAKEN:
                held.context.lose()
        held.task.cancel()
        held.task.add_done_callback(lambda _: self._settle(held, cancelled()))  # it may end before its first step
        held.patience = AwakeTimer(PATIENCE_SECONDS, self._leave_behind, held)

    def _leave_behind(self, held: Held) -> None:
        """The handler swallowed its cancellation: its job goes on without it."""
        if held.settled or held.task is None:
            return
        self._left_behind.add(held.job.id, held.task)
        self._settle(held, cancelled())


def cancelled() -> Ended:
    return Ended(error=asyncio.CancelledError())
