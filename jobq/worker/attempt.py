"""What the worker lets an executor know and say about the attempt that it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import monotonic

from jobq.model import Claimed
from jobq.worker.held import Held


class HeldAttempt:
    """See jobq.executors.base.Attempt."""

    def __init__(
        self, held: Held, *, set_timeout: Callable[[Held], None], settle: Callable[[Held], Awaitable[bool]]
    ) -> None:
        self._held = held
        self._set_timeout = set_timeout
        self._settle = settle

    @property
    def job(self) -> Claimed:
        return self._held.job

    def report(self, name: str, text: str) -> None:
        if self._held.context is not None:
            self._held.context.report(name, text)

    def waits(self) -> None:
        self._held.waits = True
        self._held.cancel_timers()

    def begins(self) -> None:
        if self._held.waits:
            self._held.waits = False
            self._held.started = monotonic()
            self._set_timeout(self._held)

    def completes(self) -> bool:
        """From here on the heartbeat may find the row gone although nobody has taken it."""
        self._held.completing = self._held.stop is None
        return self._held.completing

    def completed(self, committed: bool) -> None:
        self._held.completed = self._held.completing = committed

    async def settled(self) -> bool:
        return await self._settle(self._held)
