"""Starts held jobs: each in an asyncio task of its own, or in none where its executor begins it without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from time import monotonic
from typing import Any

from jobq.executors import Begins, Call, Executor
from jobq.verdict import Ended
from jobq.worker.attempt import HeldAttempt, HeldContext, Hooks
from jobq.worker.beginning import begin
from jobq.worker.held import Held
from jobq.worker.lease import Lease
from jobq.worker.stopper import cancelled


class Starter:
    """How each ends comes to `settle`, once or several times; `do_not_begin` gets those whose lease has run out.

    A task is cancelled once (`Task.cancel`), and is in no anyio task group: its scopes deliver a cancellation again and
    again to a handler that swallows it, 100 000 times in 1.2 s, and can never be left then. Tasks are not few that live
    long either: what libraries tie to a task would go from job to job.
    """

    def __init__(
        self,
        executors: Mapping[str, Executor],
        around: Iterable[Callable[[], Any]],
        hooks: Hooks,
        lease: Lease,
        *,
        settle: Callable[[Held, Ended], None],
        do_not_begin: Callable[[Held], None],
    ) -> None:
        self.state: Any = None  # what the application's lifespan yielded
        self._executors = executors
        self._begins = {name: each.begin for name, each in executors.items() if isinstance(each, Begins)}
        self._around = tuple(around)
        self._hooks = hooks
        self._lease = lease
        self._settle = settle
        self._do_not_begin = do_not_begin

    def start(self, held: Held, loop: asyncio.AbstractEventLoop) -> None:
        """On the loop that runs."""
        held.started = monotonic()
        if held.timeout is not None:
            self._hooks.watch(held)
        if held.handler.executor in self._begins and self._begin(held):
            return
        task = begin(loop, self._attempt(held), name=f"jobq {held.job.kind} {held.job.id}")
        if not held.settled:
            held.task = task

    def _begin(self, held: Held) -> bool:
        """Whether it needs no task: it has begun, or is not to."""
        if self._lease.has_run_out:
            self._do_not_begin(held)
            return True
        try:
            held.task = self._begins[held.handler.executor](self._call_of(held))
        except BaseException as error:  # args that do not fit; an executor of the user's that broke its promise
            self._settle(held, Ended(error=error))
            return True
        if held.task is None:
            return False
        held.task.add_done_callback(partial(self._has_ended, held))
        return True

    def _has_ended(self, held: Held, begun: asyncio.Future[Ended]) -> None:
        try:
            ended = begun.result()
        except asyncio.CancelledError:
            ended = cancelled()
        except BaseException as error:
            ended = Ended(error=error)
        self._settle(held, ended)

    async def _attempt(self, held: Held) -> None:
        if held.task is None:  # it begins at once
            held.task = asyncio.current_task()
        if self._lease.has_run_out:  # where a process that was frozen wakes up, say: others may have the job
            self._do_not_begin(held)
            return
        try:
            ended = await self._executors[held.handler.executor].run(self._call_of(held))
        except asyncio.CancelledError:
            ended = cancelled()
        except BaseException as error:
            ended = Ended(error=error)
        self._settle(held, ended)

    def _call_of(self, held: Held) -> Call:
        """Raises: ArgsError."""
        handler = held.handler
        arguments = handler.codec.decode(held.job.args)
        held.context = HeldContext(held, self._hooks, self.state)
        return Call(handler.function, arguments, held.context, self._around, HeldAttempt(held, self._hooks))
