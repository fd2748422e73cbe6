"""What an attempt is to the code that runs it: to its executor an Attempt, to its handler a Context."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, NamedTuple

from jobq.context import Context, CurrentJob, Transaction
from jobq.model import Claimed
from jobq.store.ending import Fence
from jobq.worker.held import Held


class Hooks(NamedTuple):
    """What an attempt may have the worker do."""

    watch: Callable[[Held], None]
    settle: Callable[[Held], Awaitable[bool]]
    open_transaction: Callable[[Held], Transaction]
    report: Callable[[Fence, str, str], None]


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

    def begins(self) -> None:
        if self._held.waits:
            self._held.waits = False
            self._held.started = monotonic()
            self._hooks.watch(self._held)

    def completes(self) -> bool:
        """From here on the heartbeat may find the row gone although nobody has taken it."""
        self._held.completing = self._held.stop is None
        return self._held.completing

    def completed(self, committed: bool) -> None:
        self._held.completed = self._held.completing = committed

    async def settled(self) -> bool:
        return await self._hooks.settle(self._held)


class HeldContext(Context):
    """The context of a held job. Most handlers ask for nothing: what they may ask for is made when they do."""

    _view: CurrentJob | None = None

    def __init__(self, held: Held, hooks: Hooks, state: Any) -> None:  # its parent's sets what is made here
        self._held = held
        self._hooks = hooks
        self.state = state
        self._meta = held.job.meta

    @property
    def job(self) -> CurrentJob:
        view = self._view
        if view is None:
            view = self._view = self._held.view
        return view

    def report(self, name: str, text: str) -> None:
        self._hooks.report(self._held.fence, name, text)

    def transaction(self) -> Transaction:
        return self._hooks.open_transaction(self._held)
