"""What the worker lets an executor know and say about the attempt that it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import NamedTuple

from jobq.model import Claimed
from jobq.worker.held import Held


class Hooks(NamedTuple):
    """What an attempt may have the worker do."""

    set_timeout: Callable[[Held], None]
    settle: Callable[[Held], Awaitable[bool]]


class HeldAttempt:
    """See jobq.executors.base.Attempt."""

    __slots__ = ("_held", "_hooks")

    def __init__(self, held: Held, hooks: Hooks) -> None:
        self._held = held
        self._hooks = hooks

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
            self._hooks.set_timeout(self._held)

    def completes(self) -> bool:
        """From here on the heartbeat may find the row gone although nobody has taken it."""
        self._held.completing = self._held.stop is None
        return self._held.completing

    def completed(self, committed: bool) -> None:
        self._held.completed = self._held.completing = committed

    async def settled(self) -> bool:
        return await self._hooks.settle(self._held)
