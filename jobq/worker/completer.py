"""Records how jobs ended. Batches come by themselves: what ends while one is being written goes into the next."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from time import monotonic

import anyio
import sqlalchemy.exc as sa_exc
from anyio.abc import TaskStatus

from jobq.database import Database
from jobq.describe import as_json, describe, message_of
from jobq.events import EndCallback, ErrorEvent, JobEnd, tell
from jobq.faults import can_wait_out, is_connection_failure, sqlstate
from jobq.model import State
from jobq.outcomes import PauseQueue
from jobq.retention import kept_for
from jobq.spans import span
from jobq.store import ending as store
from jobq.store.ending import Ending, Fence
from jobq.verdict import Ended, Verdict, judge
from jobq.worker.held import Held, HeldJobs
from jobq.worker.joblog import JobLog, one_line
from jobq.worker.link import Link
from jobq.worker.stats import Counters

logger = logging.getLogger("jobq.worker")
LARGEST_BATCH = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    held: Held
    ending: Ending
    verdict: Verdict | None  # None: the job was lost, only its slot is freed
    completed: bool  # when added: a thread left behind may complete its job later

    @property
    def is_alone(self) -> bool:
        """Written by a statement of its own: it goes back, or it frees a slot."""
        return self.ending.state is State.PENDING or self.ending.slot_wait is not None


class Completer:
    """Writes the ends of jobs, fenced; what the fence refuses is counted, said and dropped."""

    def __init__(
        self, database: Database, link: Link, counters: Counters, held: HeldJobs, *, name: str, channel: str
    ) -> None:
        self.on_freed: Callable[[timedelta], None] = lambda wait: None  # called when a slot was freed
        self.on_end: Sequence[EndCallback] = ()  # called for each end that is recorded
        self.on_recorded: Callable[[int], None] = lambda id_: None  # called with each job that has ended for good
        self.flush: Callable[[Iterable[Fence]], Awaitable[None]] = _nothing_to_flush  # writes what was reported before
        self._has_unrecorded = False
        self._is_unsure = False  # a try got no answer: what the fence refuses now, that try may have written
        self._held = held
        self._database = database
        self._link = link
        self._counters = counters
        self._name = name
        self._channel = channel
        self._log = JobLog()
        self._entries: deque[_Entry] = deque()
        self._writing: list[_Entry] = []
        self._arrived = anyio.Event()
        self._idle = anyio.Event()

    def free_slot(self, held: Held) -> None:
        """Have the slot freed of a job that was lost: nothing else of it is written."""
        ending = Ending(held.fence, State.CANCELLED, slot_wait=timedelta(0))
        self._entries.append(_Entry(held, ending, None, completed=True))
        self._arrived.set()

    def add(self, held: Held, ending: Ending, verdict: Verdict) -> None:
        """Have an end written. The job stays held until it is."""
        self._entries.append(_Entry(held, ending, verdict, held.completed))
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
        while self._entries or self._writing:
            while self._entries and len(self._writing) < LARGEST_BATCH:
                self._writing.append(self._entries.popleft())
            try:
                await self._write(self._writing)
            except Exception as error:
                if not can_wait_out(error):
                    raise
                self._is_unsure |= is_connection_failure(error)
                await anyio.sleep(self._link.failed("completer", error))
            else:
                self._link.worked("completer")
                self._writing, self._is_unsure = [], False
        idle, self._idle = self._idle, anyio.Event()
        idle.set()

    async def drained(self) -> None:
        """Returns when everything that was added is recorded."""
        while self._entries or self._writing:
            await self._idle.wait()

    def take_unrecorded(self) -> bool:
        """Whether an end could not be written since the last look: that job carries the worker's id, unknown to it."""
        unrecorded, self._has_unrecorded = self._has_unrecorded, False
        return unrecorded

    async def _write(self, batch: Sequence[_Entry]) -> None:
        await self.flush(entry.held.fence for entry in batch)
        done = [e for e in batch if e.completed]
        ends = [e for e in batch if not e.completed and not e.is_alone]
        alone = [e for e in batch if not e.completed and e.is_alone]
        for _, entries in groupby(sorted(ends, key=_worker), key=_worker):
            await self._write_ends(list(entries))
        for entry in alone:
            if self._held.has(entry.held):
                await self._write_one(entry)
        for entry in done:
            if self._held.has(entry.held):
                await self._write_text(entry)

    async def _write_ends(self, entries: list[_Entry]) -> None:
        entries = [entry for entry in entries if self._held.has(entry.held)]  # the others went with an earlier try
        if not entries:
            return
        try:
            mine = await self._finish([entry.ending for entry in entries])
        except sa_exc.DBAPIError as error:
            if can_wait_out(error):
                raise
            for entry in entries:  # one of them is refused: find it, record the others
                await self._write_one(entry)
            return
        for entry in entries:
            self._written(entry, entry.held.job.id in mine)

    async def _write_one(self, entry: _Entry) -> None:
        try:
            self._written(entry, await self._try(entry))
        except sa_exc.DBAPIError as error:
            if can_wait_out(error):
                raise
            await self._write_refused(entry, error)

    async def _write_refused(self, entry: _Entry, error: sa_exc.DBAPIError) -> None:
        """The server refuses this one row: the attempt fails with that, in words that the server has no part in."""
        problem = RuntimeError(f"the result could not be stored: SQLSTATE {sqlstate(error)}")
        logger.error("job %d (%s): %s", entry.held.job.id, entry.held.job.kind, problem)
        job = entry.held.job
        verdict = judge(
            Ended(error=problem),
            failures=job.failures,
            max_attempts=entry.held.max_attempts,
            retry=entry.held.handler.settings.retry,
            no_retry_on=entry.held.handler.settings.no_retry_on,
        )
        text = as_json(describe(problem, attempt=job.attempt, worker=self._name))
        ending = Ending(
            entry.held.fence,
            verdict.state,
            verdict.outcome,
            text,
            verdict.delay,
            kept_for(State.DEAD, None),
            entry.ending.slot_wait,
        )
        if job.in_order and ending.slot_wait is not None and ending.delay is not None:
            ending = replace(ending, delay=None, slot_wait=max(ending.slot_wait, ending.delay))
        refused = replace(entry, ending=ending, verdict=verdict)
        try:
            self._written(refused, await self._try(refused))
        except sa_exc.DBAPIError as again:
            if can_wait_out(again):
                raise
            logger.error("job %d (%s): its end cannot be recorded: %s", job.id, job.kind, one_line(message_of(again)))
            self._has_unrecorded = True
            self._held.drop(entry.held)

    async def _try(self, entry: _Entry) -> bool:
        ending = entry.ending
        if ending.state is not State.PENDING:
            return await self._finish_one(ending)
        if entry.verdict is not None and entry.verdict.pause is not None:
            is_mine = await self._pause(entry, entry.verdict.pause)
        else:
            is_mine = await self._database.run(store.put_back, ending)
        return is_mine or (self._is_unsure and await self._database.run(store.was_put_back, ending))

    async def _finish_one(self, ending: Ending) -> bool:
        if ending.slot_wait is None:
            return ending.fence.id in await self._finish([ending])
        is_mine = await self._database.run(store.finish_limited, ending)
        return is_mine or (self._is_unsure and bool(await self._database.run(store.recorded, [ending])))

    async def _pause(self, entry: _Entry, pause: PauseQueue) -> bool:
        """Pause the job's queue with the job put back. Whoever begins a pause tells of it: one word in the fleet."""
        held = entry.held
        is_mine, began = await self._database.run(
            store.pause_and_put_back, entry.ending, queue=held.job.queue, channel=self._channel
        )
        if began:
            why = one_line(message_of(pause))
            logger.warning("queue %s is paused for %s: %s", held.job.queue, span(pause.duration), why)
            tell(self._link.callbacks(), ErrorEvent(held.view, pause, held.job.attempt, final=False))
        return is_mine

    async def _finish(self, endings: Sequence[Ending]) -> set[int]:
        mine = await self._database.run(store.finish, endings)
        missing = [ending for ending in endings if ending.fence.id not in mine]
        if missing and self._is_unsure:
            mine |= await self._database.run(store.recorded, missing)
        return mine

    async def _write_text(self, entry: _Entry) -> None:
        """The text of a job that is done already; one that the server refuses is left out."""
        job = entry.held.job
        try:
            if entry.ending.outcome is not None:
                ending = entry.ending
                await self._database.run(store.set_outcome, ending.fence, ending.outcome, ending.result)
        except sa_exc.DBAPIError as error:
            if can_wait_out(error):
                raise
            logger.error("job %d (%s): its text could not be stored: SQLSTATE %s", job.id, job.kind, sqlstate(error))
        if entry.ending.slot_wait is not None:
            await self._database.run(store.free_slot, entry.ending.fence, entry.ending.slot_wait)
        self._written(entry, True)

    def _written(self, entry: _Entry, is_mine: bool) -> None:
        if entry.ending.slot_wait is not None:
            self.on_freed(entry.ending.slot_wait)
        if entry.verdict is None:
            pass
        elif is_mine:
            self._counters.count(entry.verdict.word)
            self._log.ended(entry.held, entry.verdict.word, entry.verdict.outcome)
            if entry.ending.state is not State.PENDING:
                self.on_recorded(entry.held.job.id)
            if self.on_end:
                tell(self.on_end, _end_of(entry.held, entry.verdict.word))
        else:
            self._counters.refused += 1
            logger.warning(
                "job %d (%s): the lease was lost, another hand has the job; the result of attempt %d is dropped",
                entry.held.job.id,
                entry.held.job.kind,
                entry.held.job.attempt,
            )
        self._held.drop(entry.held)


async def _nothing_to_flush(fences: Iterable[Fence]) -> None:
    return None


def _end_of(held: Held, word: str) -> JobEnd:
    wait = max(held.job.waited, timedelta(0))
    return JobEnd(held.job.queue, held.job.kind, word, wait, timedelta(seconds=monotonic() - held.started))


def _worker(entry: _Entry) -> int:
    return entry.held.job.worker_id
