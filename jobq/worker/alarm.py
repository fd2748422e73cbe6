"""How a loop that waits for work sleeps."""

from __future__ import annotations

import asyncio

import anyio.lowlevel


class Alarm:
    """One task sleeps; whoever is in its event loop may wake it, before it sleeps too.

    A future and a timer: a cancel scope around an event would be left on the way from a commit to its handler.
    """

    def __init__(self) -> None:
        self._rings = False
        self._sleep: asyncio.Future[None] | None = None

    def ring(self) -> None:
        self._rings = True
        self._end_sleep()

    async def sleep(self, seconds: float | None) -> None:
        """Until it rings, or has rung since the last sleep, or so long."""
        if self._rings:
            await anyio.lowlevel.checkpoint()
        else:
            await self._sleep_for(seconds)
        self._rings = False

    async def _sleep_for(self, seconds: float | None) -> None:
        loop = asyncio.get_running_loop()
        self._sleep = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, self._end_sleep)
        try:
            await self._sleep
        finally:
            self._sleep = None
            if timer is not None:
                timer.cancel()

    def _end_sleep(self) -> None:
        if self._sleep is not None and not self._sleep.done():
            self._sleep.set_result(None)
