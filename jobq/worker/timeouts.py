"""The timeouts of the jobs that run: one timer for all of them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection
from time import monotonic

from jobq.worker.held import Held, Stop

EARLY_SECONDS = 0.001  # a loop may count in whole milliseconds


class Timeouts:
    """The timer is that of the earliest deadline. Most jobs end long before theirs: nothing is set or cancelled for
    these, which takes a loop 2.5 to 3 us."""

    def __init__(self, running: Collection[Held], stop: Callable[[Held, Stop], None]) -> None:
        self._running = running
        self._stop = stop
        self._next = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, held: Held) -> None:
        """From now on, or anew since its deadline is another."""
        deadline = held.deadline
        if deadline is not None and deadline < self._next:
            self._set(deadline)

    def _set(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = deadline
        wait = max(0.0, deadline - monotonic())
        self._timer = asyncio.get_running_loop().call_later(wait, self._look)

    def _look(self) -> None:
        """Stop what is over its time, then wait for the next."""
        self._next, self._timer = math.inf, None
        now = monotonic() + EARLY_SECONDS
        try:
            for held in list(self._running):
                if held.stop is None and held.deadline is not None and held.deadline <= now:
                    self._stop(held, Stop.TIMEOUT)
        finally:  # whatever one of them raises, the others have their time
            for held in self._running:
                if held.stop is None:
                    self.watch(held)
