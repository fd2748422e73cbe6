"""Runs claimed jobs: each is started when there is a slot, and settled exactly once."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Iterable, Mapping
from time import monotonic
from typing import Any

import anyio

from jobq.context import Transaction
from jobq.executors import Executor
from jobq.model import Claimed
from jobq.store.ending import Fence
from jobq.verdict import Ended
from jobq.worker.attempt import Hooks
from jobq.worker.groups import Room
from jobq.worker.held import TAKEN, Held, HeldJobs, Stop
from jobq.worker.intake import Intake
from jobq.worker.lease import Lease
from jobq.worker.left_behind import LeftBehind
from jobq.worker.settler import Settler
from jobq.worker.starter import Starter
from jobq.worker.stopper import Stopper, cancelled
from jobq.worker.timeouts import Timeouts

MOST_A_TURN = 20  # jobs that are begun in one turn of the event loop: a quarter of a millisecond, of quick ones
LONGEST_TURN = 0.001


class Runner:
    """So many at a time run; the others wait in the intake."""

    def __init__(
        self,
        *,
        intake: Intake,
        left_behind: LeftBehind,
        rooms: Mapping[str, Room],
        executors: Mapping[str, Executor],
        around: Iterable[Callable[[], Any]],
        held: HeldJobs,
        settler: Settler,
        concurrency: int,
        open_transaction: Callable[[Held], Transaction],
        settle: Callable[[Held], Awaitable[bool]],
        report: Callable[[Fence, str, str], None],
        lease: Lease,
    ) -> None:
        self.on_room: Callable[[], None] = lambda: None  # called when there is room for more jobs, if that is wanted
        self.wants_room = False
        self._intake = intake
        self._waiting = intake.waiting
        self._left_behind = left_behind
        self._rooms = rooms
        self._held = held
        self._settler = settler
        self._concurrency = concurrency
        self._running: set[Held] = set()
        self._stopper = Stopper(left_behind, settle=self._settle, never_begins=self._never_begins)
        self._timeouts = Timeouts(self._running, self._stopper.stop)
        hooks = Hooks(self._timeouts.watch, settle, open_transaction, report)
        self._starter = Starter(executors, around, hooks, lease, settle=self._settle, do_not_begin=self._do_not_begin)
        self._surroundings = contextvars.copy_context()
        self._has_turn = False  # one is on its way
        self._idle = anyio.Event()
        self._is_closing = False

    def begin_with(self, state: Any) -> None:
        """What the application's lifespan has yielded, for the contexts of handlers."""
        self._starter.state = state

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def room(self) -> int:
        """How many more jobs may be claimed."""
        return 0 if self._is_closing else self._waiting.room(len(self._running))

    @property
    def last_priority(self) -> int:
        """Of the jobs that wait for a slot the priority that comes last, 0 when none waits: smaller ones may pass."""
        return self._waiting.last_priority

    def receive(self, jobs: Iterable[Claimed]) -> None:
        """Hold claimed jobs and run them, each as soon as there is a slot: the first of them now."""
        self._intake.receive(jobs, self._running, self._stopper)
        if not self._has_turn:
            self._surroundings.run(self._turn)

    def close(self) -> None:
        """Start nothing more, and give back what has not begun."""
        self._is_closing = True
        self._intake.hand_back()

    def stop_all(self, reason: Stop) -> None:
        """Tell every job to stop; what only waits for a slot is given back by whoever leaves."""
        waiting = self._waiting.remove(lambda _: True) if reason in TAKEN else []
        for held in [*self._running, *waiting]:
            self._stopper.stop(held, reason)

    def stop_lost(self, taken: Mapping[Fence, bool]) -> None:
        """Stop the attempts that are no longer this worker's, unless their end is on its way or written.

        `taken`: and whether the job was cancelled by hand.
        """
        for fence, is_cancelled in taken.items():
            held = self._held.get(fence.id)
            if held is not None and held.fence == fence and not held.settled and not held.completing:
                self._stopper.stop(held, Stop.CANCELLED if is_cancelled else Stop.LOST)

    async def ended(self) -> None:
        """Returns when nothing runs any more (what was left behind does not count)."""
        while self._running:
            self._idle = anyio.Event()
            await self._idle.wait()

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
        while len(self._running) < self._concurrency and not self._is_closing and (held := self._waiting.take()):
            number += 1
            self._running.add(held)
            self._starter.start(held, loop)
            if number == MOST_A_TURN or held.started > ends:
                self._wake()
                break
        self._tell_room()

    def _do_not_begin(self, held: Held) -> None:
        self._running.discard(held)
        self._intake.give_back(held)
        self._tell_room()  # the lease may be good again before anybody finds it lost
        if not self._running:
            self._idle.set()

    def _settle(self, held: Held, ended: Ended) -> None:
        """Decide a job's end, once: when its task ends, or when that has been waited for long enough."""
        if held.settled:
            return
        held.settled = True
        if held.patience is not None:
            held.end_patience()
        self._running.discard(held)
        if held.job.kind in self._rooms:
            self._rooms[held.job.kind].release(held.job)
        self._waiting.ended(monotonic() - held.started)
        self._settler.settle(held, ended)
        if held.stop is None:
            held.context = held.task = None  # they lead back to what holds them: only the collector would free them
        elif held.job.id in self._left_behind:
            self._left_behind.tell(held, held.stop)
        if not self._has_turn and (self.wants_room or self._waiting):
            self._wake()
        if not self._running:
            self._idle.set()

    def _tell_room(self) -> None:
        if self.wants_room and self.room:
            self.wants_room = False
            self.on_room()

    def _never_begins(self, held: Held) -> None:
        """A job that waited for a slot is no longer ours, or the lease is gone."""
        self._waiting.remove(lambda each: each is held)
        self._intake.let_go(held)
        self._settler.settle(held, cancelled())
