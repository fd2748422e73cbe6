"""Time for others to act in, of which little passes while the whole process stands still (SIGSTOP, a paused container).

The clock goes on meanwhile. A timer that is due when the process wakes up is called before any thread, child or
coroutine has had its turn, so that a limit of one timer would be over for all of them at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from math import ceil
from typing import Any

STEP_SECONDS = 0.1


class AwakeTimer:
    """`loop.call_later` in short steps, one after the other: to stand still costs no more than one of them."""

    def __init__(self, seconds: float, function: Callable[..., Any], *args: Any) -> None:
        self._steps = ceil(seconds / STEP_SECONDS)
        self._act: Callable[[], object] = partial(function, *args)
        self._loop = asyncio.get_running_loop()
        self._handle = self._loop.call_later(STEP_SECONDS, self._step)

    def cancel(self) -> None:
        self._handle.cancel()

    def _step(self) -> None:
        self._steps -= 1
        if self._steps > 0:
            self._handle = self._loop.call_later(STEP_SECONDS, self._step)
        else:
            self._act()


class AwakeClock:
    """For a thread that looks at it now and then: between two looks no more than `most` seconds pass."""

    def __init__(self, clock: Callable[[], float], most: float) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._most = most
        self._looked_at = clock()

    def look(self) -> float:
        """The seconds until now, as they stay until the next look."""
        now = self._clock()
        self.seconds += min(now - self._looked_at, self._most)
        self._looked_at = now
        return self.seconds


@asynccontextmanager
async def awake_timeout(seconds: float) -> AsyncIterator[None]:
    """As `asyncio.timeout`. Raises: TimeoutError."""
    async with asyncio.timeout(None) as limit:
        timer = AwakeTimer(seconds, limit.reschedule, 0.0)
        try:
            yield
        finally:
            timer.cancel()
