"""Runs claimed jobs: one asyncio task each, watched for timeouts, told to stop when it must, settled exactly once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

import anyio

from jobq.context import Context, Transaction
from jobq.errors import ArgsError
from jobq.executors import Call, Executor
from jobq.model import Claimed, State
from jobq.queue_settings import QueueSettings
from jobq.store.ending import Ending, Fence
from jobq.verdict import Ended, Verdict
from jobq.worker.attempt import HeldAttempt
from jobq.worker.completer import Completer
from jobq.worker.held import TAKEN, Held, HeldJobs, Stop, held_of
from jobq.worker.settler import Settler
from jobq.worker.threads import ThreadRoom

logger = logging.getLogger("jobq.worker")

PATIENCE_SECONDS = 1.0  # what a stopped handler has for its own clean-up before it is left behind
UNSAID = QueueSettings()
STILL_RUNNING = timedelta(seconds=5)  # how long a job waits whose former attempt still runs in this process


class Runner:
    """Holds the worker's jobs from the claim until their end is recorded.

    Handlers run in native tasks and are cancelled once (`Task.cancel`), not in an anyio task group: its scopes deliver
    a cancellation again and again to a handler that swallows it, 100 000 times in 1.2 s, and can never be left then.
    """

    def __init__(
        self,
        *,
        handlers: Mapping[str, Any],
        queues: Mapping[str, QueueSettings],
        executors: Mapping[str, Executor],
        around: Iterable[Callable[[], Any]],
        held: HeldJobs,
        completer: Completer,
        settler: Settler,
        concurrency: int,
        threads: ThreadRoom,
        open_transaction: Callable[[Held], Transaction],
        settle: Callable[[Held], Awaitable[bool]],
        report: Callable[[Fence, str, str], None],
    ) -> None:
        self.threads = threads
        self.state: Any = None  # what the application's lifespan yielded
        self._handlers = handlers
        self._queues = queues
        self._executors = executors
        self._around = tuple(around)
        self._held = held
        self._completer = completer
        self._settler = settler
        self._concurrency = concurrency
        self._open_transaction = open_transaction
        self._settle_commit = settle
        self._report = report
        self.on_room: Callable[[], None] = lambda: None  # called when a worker that was full is so no longer
        self.on_left_behind: Callable[[str], None] = lambda _queue: None
        self._running: set[Held] = set()
        self._left_behind: dict[int, asyncio.Task[Ended]] = {}
        self._idle = anyio.Event()

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def room(self) -> int:
        """How many more jobs may be claimed."""
        return max(0, self._concurrency - len(self._running))

    @property
    def left_behind(self) -> set[int]:
        """Jobs whose handler could not be stopped and still runs."""
        ids = {id_ for id_, task in self._left_behind.items() if not task.done()}
        return ids.union(*(executor.left_behind for executor in self._executors.values()))

    def start(self, job: Claimed) -> None:
        """Run a claimed job. One that still runs here from an earlier attempt waits until that has ended."""
        earlier = self._held.get(job.id)
        held = self._hold(job)
        if earlier in self._running or job.id in self.left_behind:
            if earlier is not None:
                self.stop(earlier, Stop.LOST)
            held.settled = True
            self._completer.add(held, _put_off(held), Verdict(State.PENDING))
            return
        self._running.add(held)
        self.threads.hold(job)
        held.task = asyncio.get_running_loop().create_task(self._attempt(held), name=f"jobq {job.kind} {job.id}")
        held.task.add_done_callback(lambda task: self._settle(held, _ended(task)))
        self._set_timeout(held)

    def stop(self, held: Held, reason: Stop) -> None:
        """Tell a job to stop; left behind when it has not ended a second later. The first reason stays."""
        if held.settled or held.stop is not None or held.task is None:
            return
        held.stop = reason
        if held.context is not None:
            held.context.cancel()
            if reason in TAKEN:
                held.context.lose()
        held.task.cancel()
        self._after(held, PATIENCE_SECONDS, self._leave_behind, held)

    def stop_all(self, reason: Stop) -> None:
        """Tell every running job to stop."""
        for held in list(self._running):
            self.stop(held, reason)

    def stop_lost(self, taken: Mapping[Fence, bool]) -> None:
        """Stop the attempts that are no longer this worker's, unless their end is on its way or written.

        `taken`: and whether the job was cancelled by hand.
        """
        for fence, is_cancelled in taken.items():
            held = self._held.get(fence.id)
            if held is not None and held.fence == fence and not held.settled and not held.completing:
                self.stop(held, Stop.CANCELLED if is_cancelled else Stop.LOST)

    async def ended(self) -> None:
        """Returns when nothing runs any more (what was left behind does not count)."""
        while self._running:
            self._idle = anyio.Event()
            await self._idle.wait()

    def _hold(self, job: Claimed) -> Held:
        held = held_of(job, self._handlers[job.kind], self._queues.get(job.queue, UNSAID))
        self._held.put(held)
        return held

    async def _attempt(self, held: Held) -> Ended:
        try:
            arguments = held.handler.codec.decode(held.job.args)
        except ArgsError as error:
            return Ended(error=error)
        held.context = Context(
            held.view,
            self.state,
            lambda: self._open_transaction(held),
            meta=held.job.meta,
            report=lambda name, text: self._report(held.fence, name, text),
        )
        attempt = HeldAttempt(held, set_timeout=self._set_timeout, settle=self._settle_commit)
        call = Call(held.handler.function, arguments, held.context, self._around, attempt)
        return await self._executors[held.handler.executor].run(call)

    def _settle(self, held: Held, ended: Ended) -> None:
        """Decide a job's end, once: when its task ends, or when that has been waited for long enough."""
        if held.settled:
            return
        held.settled = True
        held.cancel_timers()
        self._running.discard(held)
        self.threads.release(held.job)
        self._settler.settle(held, ended)
        if held.stop is not None and held.job.id in self.left_behind:
            if held.context is not None:
                held.context.lose()
            logger.error(
                "job %d (%s): its handler did not stop (%s) and is left behind, still running",
                held.job.id,
                held.job.kind,
                held.stop.value,
            )
            self.on_left_behind(held.job.queue)
        if self.room == 1:
            self.on_room()
        if not self._running:
            self._idle.set()

    def _leave_behind(self, held: Held) -> None:
        """The handler swallowed its cancellation: its job goes on without it."""
        if held.settled or held.task is None:
            return
        self._left_behind[held.job.id] = held.task
        held.task.add_done_callback(lambda _: self._left_behind.pop(held.job.id, None))
        self._settle(held, Ended(error=asyncio.CancelledError()))

    def _set_timeout(self, held: Held) -> None:
        if held.timeout is not None:
            self._after(held, held.timeout.total_seconds(), self.stop, held, Stop.TIMEOUT)

    def _after(self, held: Held, seconds: float, function: Callable[..., None], *args: Any) -> None:
        held.timers.append(asyncio.get_running_loop().call_later(seconds, function, *args))


def _put_off(held: Held) -> Ending:
    """Back until its former attempt has ended; in a FIFO queue it keeps its place, and the slot waits."""
    if held.job.slot is None:
        return Ending(held.fence, State.PENDING, delay=STILL_RUNNING)
    if held.job.in_order:
        return Ending(held.fence, State.PENDING, slot_wait=STILL_RUNNING)
    return Ending(held.fence, State.PENDING, delay=STILL_RUNNING, slot_wait=timedelta(0))


def _ended(task: asyncio.Task[Ended]) -> Ended:
    """How a job's task ended; a task cancelled before its first step has run nothing of ours."""
    if task.cancelled():
        return Ended(error=asyncio.CancelledError())
    error = task.exception()  # an executor of the user's that broke its promise
    return task.result() if error is None else Ended(error=error)
