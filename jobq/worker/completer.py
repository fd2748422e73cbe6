"""Has the ends of jobs recorded. Batches come by themselves: what ends while one is written goes into the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from typing import TypeVar

import anyio
from anyio.abc import TaskStatus

from jobq.database import Database
from jobq.events import EndsCallback
from jobq.faults import can_wait_out, is_connection_failure
from jobq.model import State
from jobq.store.ending import Ending, Fence
from jobq.verdict import Verdict
from jobq.worker.entries import Batch, Entry
from jobq.worker.held import Held, HeldJobs
from jobq.worker.link import Link
from jobq.worker.recorder import Recorder
from jobq.worker.stats import Counters

T = TypeVar("T")
LARGEST_BATCH = 1_000


class Completer:
    """Takes ends of jobs, and keeps each until it is written."""

    def __init__(
        self, database: Database, link: Link, counters: Counters, held: HeldJobs, *, name: str, channel: str
    ) -> None:
        self._recorder = Recorder(database, link, counters, held, name=name, channel=channel)
        self._link = link
        self._done: deque[Held] = deque()
        self._entries: deque[Entry] = deque()
        self._given_back: list[Held] = []
        self._writing = Batch()
        self._arrived = anyio.Event()
        self._idle = anyio.Event()

    def flush_with(self, flush: Callable[[Iterable[Fence]], Awaitable[None]]) -> None:
        """What writes what jobs have reported, before their ends."""
        self._recorder.flush = flush

    def on_recorded(self, callback: Callable[[Iterable[int]], None]) -> None:
        """Call back with jobs that have ended for good, with their ids."""
        self._recorder.recorded.on_recorded = callback

    def on_freed(self, callback: Callable[[timedelta], None]) -> None:
        """Call back when a slot was freed, with the wait until it is ready."""
        self._recorder.recorded.on_freed = callback

    def on_paused(self, callback: Callable[[str], None]) -> None:
        """Call back when a handler has paused its queue."""
        self._recorder.on_paused = callback

    def on_ends(self, callbacks: Sequence[EndsCallback]) -> None:
        """Call back with the ends that are recorded together."""
        self._recorder.recorded.on_ends = callbacks

    def done(self, held: Held) -> None:
        """Have written that a job ended well, with its text; it has no slot. The job stays held until it is."""
        if not self._done:
            self._arrived.set()
        self._done.append(held)

    def add(self, held: Held, ending: Ending, verdict: Verdict) -> None:
        """Have any other end written."""
        self._entries.append(Entry(held, ending, verdict, held.completed))
        self._arrived.set()

    def give_back(self, held: Held) -> None:
        """Have a job given back that has not begun and has no slot."""
        self._given_back.append(held)
        self._arrived.set()

    def free_slot(self, held: Held) -> None:
        """Have the slot freed of a job that was lost: nothing else of it is written."""
        ending = Ending(held.fence, State.CANCELLED, slot_wait=timedelta(0))
        self._entries.append(Entry(held, ending, None, completed=True))
        self._arrived.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Write until cancelled."""
        task_status.started()
        while True:
            await self._arrived.wait()
            await self.run_once()

    async def run_once(self) -> None:
        """Write what has arrived; a batch that meets a lost connection is written again until it is recorded."""
        self._arrived = anyio.Event()
        while self._take():
            try:
                await self._recorder.write(self._writing)
            except Exception as error:
                if not can_wait_out(error):
                    raise
                self._recorder.writes.is_unsure |= is_connection_failure(error)
                await anyio.sleep(self._link.failed("completer", error))
            else:
                self._link.worked("completer")
                self._recorder.writes.is_unsure = False
                self._writing = Batch()
        idle, self._idle = self._idle, anyio.Event()
        idle.set()

    async def drained(self) -> None:
        """Returns when everything that was added is recorded."""
        while self._done or self._entries or self._given_back or self._writing:
            await self._idle.wait()

    def take_unrecorded(self) -> bool:
        """Whether an end could not be written since the last look: that job carries the worker's id, unknown to it."""
        unrecorded, self._recorder.has_unrecorded = self._recorder.has_unrecorded, False
        return unrecorded

    def _take(self) -> Batch:
        """What is to be written next: a batch that failed, with what arrived meanwhile, as far as there is room."""
        batch = self._writing
        _move(self._done, batch.done)
        _move(self._entries, batch.entries)
        batch.given_back += self._given_back
        self._given_back.clear()
        return batch


def _move(arrived: deque[T], taken: list[T]) -> None:
    if len(arrived) + len(taken) <= LARGEST_BATCH:
        taken += arrived
        arrived.clear()
    while arrived and len(taken) < LARGEST_BATCH:
        taken.append(arrived.popleft())
