"""Runs claimed jobs: one asyncio task each, watched for timeouts, told to stop when it must, settled exactly once."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from time import monotonic
from typing import Any

import anyio

from jobq.context import Transaction
from jobq.executors import Call, Executor
from jobq.executors.patience import AwakeTimer
from jobq.model import Claimed, State
from jobq.queue_settings import QueueSettings
from jobq.store.ending import Ending, Fence
from jobq.verdict import Ended, Verdict
from jobq.worker.ahead import Ahead
from jobq.worker.attempt import HeldAttempt, HeldContext, Hooks
from jobq.worker.beginning import begin
from jobq.worker.completer import Completer
from jobq.worker.groups import Places, Room
from jobq.worker.held import TAKEN, Held, HeldJobs, Stop, held_of
from jobq.worker.lease import Lease
from jobq.worker.settler import Settler
from jobq.worker.threads import ThreadRoom

logger = logging.getLogger("jobq.worker")

PATIENCE_SECONDS = 1.0  # what a stopped handler has for its own clean-up before it is left behind
UNSAID = QueueSettings()
MOST_A_TURN = 20  # jobs that are begun in one turn of the event loop: a quarter of a millisecond, of quick ones
LONGEST_TURN = 0.001
NOW = timedelta(0)
STILL_RUNNING = timedelta(seconds=5)  # how long a job waits whose former attempt still runs in this process


class Runner:
    """Holds the worker's jobs from the claim until their end is recorded; so many at a time run.

    Handlers run in native tasks of their own and are cancelled once (`Task.cancel`), not in an anyio task group: its
    scopes deliver a cancellation again and again to a handler that swallows it, 100 000 times in 1.2 s, and can never
    be left then. Not in a few tasks that live long either: what libraries tie to a task would go from job to job.
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
        places: Mapping[str, Places],
        open_transaction: Callable[[Held], Transaction],
        settle: Callable[[Held], Awaitable[bool]],
        report: Callable[[Fence, str, str], None],
        lease: Lease,
    ) -> None:
        self.threads = threads
        self.places = places
        self._rooms: dict[str, Room] = {**dict.fromkeys(threads.needing, threads), **places}
        self.state: Any = None  # what the application's lifespan yielded
        self.on_room: Callable[[], None] = lambda: None  # called when there is room for more jobs, if that is wanted
        self.wants_room = False
        self._handlers = handlers
        self._queues = queues
        self._executors = executors
        self._around = tuple(around)
        self._held = held
        self._completer = completer
        self._settler = settler
        self._concurrency = concurrency
        self._lease = lease
        self.on_left_behind: Callable[[str], None] = lambda _queue: None
        self._hooks = Hooks(self._set_timeout, settle, open_transaction, report)
        self._surroundings = contextvars.copy_context()
        self._has_turn = False  # one is on its way
        # A job that is dead when its worker dies must not be so before it has begun.
        may_wait = not any(handler.settings.on_interrupt == "fail" for handler in handlers.values())
        self._ahead = Ahead(concurrency, self._give_one_back, is_allowed=may_wait)
        self._running: set[Held] = set()
        self._left_behind: dict[int, asyncio.Task[Any]] = {}
        self._idle = anyio.Event()
        self._is_closing = False

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def room(self) -> int:
        """How many more jobs may be claimed."""
        return 0 if self._is_closing else self._ahead.room(len(self._running))

    @property
    def last_priority(self) -> int:
        """Of the jobs that wait for a slot the priority that comes last, 0 when none waits: smaller ones may pass."""
        return self._ahead.last_priority

    @property
    def left_behind(self) -> set[int]:
        """Jobs whose handler could not be stopped and still runs."""
        ids = {id_ for id_, task in self._left_behind.items() if not task.done()}
        return ids.union(*(executor.left_behind for executor in self._executors.values()))

    def receive(self, jobs: Iterable[Claimed]) -> None:
        """Hold claimed jobs and run them, each as soon as there is a slot."""
        now = monotonic()
        for job in jobs:
            held = held_of(job, self._handlers[job.kind], self._queues.get(job.queue, UNSAID), now)
            earlier = self._held.put(held)
            if job.kind in self._rooms:
                self._rooms[job.kind].hold(job)
            if job.attempt > 1 and self._still_runs(held, earlier):
                self._let_go(held)
                self._completer.add(held, _put_off(held), Verdict(State.PENDING))
            else:
                self._ahead.put(held)
        self._ahead.settle_in(len(self._running))
        self._wake()

    def hand_back(self, queue: str | None = None) -> None:
        """Give back the jobs that wait for a slot, of one queue or all."""
        self._ahead.hand_back(lambda held: queue is None or held.job.queue == queue)

    def _give_one_back(self, held: Held) -> None:
        self._let_go(held)
        if held.job.slot is None:
            self._completer.give_back(held)
        else:
            self._completer.add(held, Ending(held.fence, State.PENDING, slot_wait=NOW), Verdict(State.PENDING))

    def close(self) -> None:
        """Start nothing more, and give back what has not begun."""
        self._is_closing = True
        self.hand_back()

    def stop(self, held: Held, reason: Stop) -> None:
        """Tell a job to stop; left behind when it has not ended a second later. The first reason stays."""
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
        held.task.add_done_callback(lambda _: self._settle(held, _cancelled()))  # it may end before its first step
        held.timers += (AwakeTimer(PATIENCE_SECONDS, self._leave_behind, held),)

    def stop_all(self, reason: Stop) -> None:
        """Tell every job to stop; what only waits for a slot is given back by whoever leaves."""
        waiting = self._ahead.remove(lambda _: True) if reason in TAKEN else []
        for held in [*self._running, *waiting]:
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

    def _still_runs(self, held: Held, earlier: Held | None) -> bool:
        """An earlier attempt that runs here is told to stop, and waited for; one that waits is let go of."""
        if earlier is not None:
            self.stop(earlier, Stop.LOST)  # taken away, by hand say
        return earlier in self._running or self._is_left_behind(held.job.id)

    def _wake(self) -> None:
        """Have a turn soon, in the context of the worker: what handlers set in theirs must not reach the next."""
        if not self._has_turn:
            self._has_turn = True
            asyncio.get_running_loop().call_soon(self._turn, context=self._surroundings)

    def _turn(self) -> None:
        """Start what there are slots for, few in a turn of the event loop: between turns it looks at connections."""
        self._has_turn = False
        loop = asyncio.get_running_loop()  # up to Python 3.11 a system call: once for all
        ends, number = monotonic() + LONGEST_TURN, 0
        while len(self._running) < self._concurrency and not self._is_closing and (held := self._ahead.take()):
            number += 1
            self._start(held, loop)
            if number == MOST_A_TURN or held.started > ends:
                self._wake()
                break
        self._tell_room()

    def _start(self, held: Held, loop: asyncio.AbstractEventLoop) -> None:
        held.started = monotonic()
        self._running.add(held)
        if held.timeout is not None:
            self._set_timeout(held)
        task = begin(loop, self._attempt(held), name=f"jobq {held.job.kind} {held.job.id}")
        if not held.settled:
            held.task = task

    async def _attempt(self, held: Held) -> None:
        if held.task is None:  # it begins at once
            held.task = asyncio.current_task()
        if self._lease.has_run_out:  # where a process that was frozen wakes up, say: others may have the job
            self._do_not_begin(held)
            return
        try:
            ended = await self._executors[held.handler.executor].run(self._call_of(held))
        except asyncio.CancelledError:
            ended = _cancelled()
        except BaseException as error:  # args that do not fit; an executor of the user's that broke its promise
            ended = Ended(error=error)
        self._settle(held, ended)

    def _do_not_begin(self, held: Held) -> None:
        self._running.discard(held)
        held.cancel_timers()
        self._give_one_back(held)
        self._tell_room()  # the lease may be good again before anybody finds it lost
        if not self._running:
            self._idle.set()

    def _call_of(self, held: Held) -> Call:
        """Raises: ArgsError."""
        handler = held.handler
        arguments = handler.codec.decode(held.job.args)
        held.context = HeldContext(held, self._hooks, self.state)
        return Call(handler.function, arguments, held.context, self._around, HeldAttempt(held, self._hooks))

    def _settle(self, held: Held, ended: Ended) -> None:
        """Decide a job's end, once: when its task ends, or when that has been waited for long enough."""
        if held.settled:
            return
        held.settled = True
        if held.timers:
            held.cancel_timers()
        self._running.discard(held)
        if held.job.kind in self._rooms:
            self._rooms[held.job.kind].release(held.job)
        self._ahead.ended(monotonic() - held.started)
        self._settler.settle(held, ended)
        if held.stop is None:
            held.context = held.task = None  # they lead back to what holds them: only the collector would free them
        elif self._is_left_behind(held.job.id):
            self._note_left_behind(held, held.stop)
        if not self._has_turn and (self.wants_room or self._ahead):
            self._wake()
        if not self._running:
            self._idle.set()

    def _tell_room(self) -> None:
        if self.wants_room and self.room:
            self.wants_room = False
            self.on_room()

    def _note_left_behind(self, held: Held, reason: Stop) -> None:
        if held.context is not None:
            held.context.lose()
        logger.error(
            "job %d (%s): its handler did not stop (%s) and is left behind, still running",
            held.job.id,
            held.job.kind,
            reason.value,
        )
        self.on_left_behind(held.job.queue)

    def _never_begins(self, held: Held) -> None:
        """A job that waited for a slot is no longer ours, or the lease is gone."""
        self._ahead.remove(lambda each: each is held)
        self._let_go(held)
        self._settler.settle(held, _cancelled())

    def _let_go(self, held: Held) -> None:
        """A job is not to begin here."""
        held.settled = True
        if held.job.kind in self._rooms:
            self._rooms[held.job.kind].release(held.job)

    def _leave_behind(self, held: Held) -> None:
        """The handler swallowed its cancellation: its job goes on without it."""
        if held.settled or held.task is None:
            return
        self._left_behind[held.job.id] = held.task
        held.task.add_done_callback(lambda _: self._left_behind.pop(held.job.id, None))
        self._settle(held, _cancelled())

    def _is_left_behind(self, id_: int) -> bool:
        return id_ in self._left_behind or any(id_ in executor.left_behind for executor in self._executors.values())

    def _set_timeout(self, held: Held) -> None:
        if held.timeout is not None:
            self._after(held, held.timeout.total_seconds(), self.stop, held, Stop.TIMEOUT)

    def _after(self, held: Held, seconds: float, function: Callable[..., None], *args: Any) -> None:
        held.timers += (asyncio.get_running_loop().call_later(seconds, function, *args),)


def _cancelled() -> Ended:
    return Ended(error=asyncio.CancelledError())


def _put_off(held: Held) -> Ending:
    """Back until its former attempt has ended; in a FIFO queue it keeps its place, and the slot waits."""
    if held.job.slot is None:
        return Ending(held.fence, State.PENDING, delay=STILL_RUNNING)
    if held.job.in_order:
        return Ending(held.fence, State.PENDING, slot_wait=STILL_RUNNING)
    return Ending(held.fence, State.PENDING, delay=STILL_RUNNING, slot_wait=timedelta(0))
