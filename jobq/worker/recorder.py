"""Writes the ends of jobs, fenced; what the fence refuses is counted, said and dropped."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from itertools import groupby
from operator import attrgetter

import sqlalchemy.exc as sa_exc

from jobq.database import Database
from jobq.describe import message_of
from jobq.events import ErrorEvent, tell
from jobq.faults import can_wait_out, sqlstate
from jobq.model import State
from jobq.outcomes import PauseQueue
from jobq.retention import kept_for
from jobq.spans import span
from jobq.store import ending as store
from jobq.store import putting_back
from jobq.store.ending import Ending, Fence
from jobq.verdict import DONE
from jobq.worker.entries import Batch, Entry
from jobq.worker.fenced_writes import FencedWrites
from jobq.worker.held import Held, HeldJobs
from jobq.worker.joblog import one_line
from jobq.worker.link import Link
from jobq.worker.recorded_ends import RecordedEnds
from jobq.worker.refused_end import as_failure, reason_of
from jobq.worker.stats import Counters

logger = logging.getLogger("jobq.worker")
_BY_ID = attrgetter("job.id")


class Recorder:
    """One batch after the other. A batch may be written again: what is recorded already is held no longer."""

    def __init__(
        self, database: Database, link: Link, counters: Counters, held: HeldJobs, *, name: str, channel: str
    ) -> None:
        self.writes = FencedWrites(database)
        self.recorded = RecordedEnds(counters, held)
        self.on_paused: Callable[[str], None] = lambda queue: None  # called when a handler has paused its queue
        self.flush: Callable[[Iterable[Fence]], Awaitable[None]] = _nothing_to_flush  # writes what was reported before
        self.has_unrecorded = False
        self._held = held
        self._database = database
        self._link = link
        self._counters = counters
        self._name = name
        self._channel = channel

    async def write(self, batch: Batch) -> None:
        """Raises: whatever the database raises that can be waited out; then the batch is to be written again."""
        await self.flush(held.fence for held in batch.ending())
        if batch.done:
            await self._write_done(batch.done)
        if batch.given_back:
            await self._give_back(batch.given_back)
        if batch.entries:
            await self._write_entries(batch.entries)

    async def _write_done(self, done: Iterable[Held]) -> None:
        """Those of one worker's id that are kept for the same time by one statement: mostly, all of them."""
        groups: dict[tuple[int, timedelta | None], list[Held]] = defaultdict(list)
        for held in self._held.still(done):
            groups[held.job.worker_id, held.keep].append(held)
        for (worker_id, keep), group in groups.items():
            group.sort(key=_BY_ID)
            await self._write_group(group, worker_id, kept_for(State.DONE, keep))

    async def _write_group(self, group: Sequence[Held], worker_id: int, keep: timedelta) -> None:
        jobs, outcomes = [held.job for held in group], [held.outcome for held in group]
        try:
            mine = await self.writes.finish_done(jobs, outcomes, worker_id=worker_id, keep=keep)
        except sa_exc.DBAPIError as error:
            if can_wait_out(error):
                raise
            for held in group:  # one of them is refused: find it, record the others
                await self._write_one(Entry(held, Ending(held.fence, State.DONE, held.outcome, keep=keep), DONE, False))
            return
        self.recorded.done(group, mine)

    async def _give_back(self, given_back: Iterable[Held]) -> None:
        held = [each for each in given_back if self._held.has(each)]
        for _, group in groupby(sorted(held, key=_worker_of), key=_worker_of):
            fences = [each.fence for each in group]
            given = await self._database.run(putting_back.give_back, fences, channel=self._channel)
            self._counters.given_back += len(given)
        for each in held:
            self._held.drop(each)

    async def _write_entries(self, entries: Sequence[Entry]) -> None:
        done = [e for e in entries if e.completed]
        ends = [e for e in entries if not e.completed and not e.is_alone]
        alone = [e for e in entries if not e.completed and e.is_alone]
        for _, group in groupby(sorted(ends, key=_worker), key=_worker):
            await self._write_ends(list(group))
        for entry in alone:
            if self._held.has(entry.held):
                await self._write_one(entry)
        for entry in done:
            if self._held.has(entry.held):
                await self._write_text(entry)

    async def _write_ends(self, entries: list[Entry]) -> None:
        entries = [entry for entry in entries if self._held.has(entry.held)]  # the others went with an earlier try
        if not entries:
            return
        try:
            mine = await self.writes.finish([entry.ending for entry in entries])
        except sa_exc.DBAPIError as error:
            if can_wait_out(error):
                raise
            for entry in entries:  # one of them is refused: find it, record the others
                await self._write_one(entry)
            return
        for entry in entries:
            self.recorded.written(entry, entry.held.job.id in mine)

    async def _write_one(self, entry: Entry) -> None:
        try:
            self.recorded.written(entry, await self._try(entry))
        except sa_exc.DBAPIError as error:
            if can_wait_out(error):
                raise
            await self._write_refused(entry, error)

    async def _write_refused(self, entry: Entry, error: sa_exc.DBAPIError) -> None:
        """The server refuses this one row."""
        job, reason = entry.held.job, reason_of(entry, error)
        logger.error("job %d (%s): %s", job.id, job.kind, reason)
        failure = as_failure(entry, reason, worker=self._name)
        try:
            self.recorded.written(failure, await self._try(failure))
        except sa_exc.DBAPIError as again:
            if can_wait_out(again):
                raise
            logger.error("job %d (%s): its end cannot be recorded: %s", job.id, job.kind, one_line(message_of(again)))
            self.has_unrecorded = True
            self._held.drop(entry.held)

    async def _try(self, entry: Entry) -> bool:
        if entry.ending.state is not State.PENDING:
            return await self.writes.finish_one(entry.ending)
        if entry.verdict is not None and entry.verdict.pause is not None:
            return await self._pause(entry, entry.verdict.pause)
        return await self.writes.put_back(entry.ending)

    async def _pause(self, entry: Entry, pause: PauseQueue) -> bool:
        """Pause the job's queue with the job put back. Whoever begins a pause tells of it: one word in the fleet."""
        held, queue = entry.held, entry.held.job.queue
        is_mine, began = await self.writes.pause_and_put_back(entry.ending, queue=queue, channel=self._channel)
        if began:
            logger.warning("queue %s is paused for %s: %s", queue, span(pause.duration), one_line(message_of(pause)))
            self.on_paused(queue)
            tell(self._link.callbacks(), ErrorEvent(held.view, pause, held.job.attempt, final=False))
        return is_mine or await self.writes.was_put_back(entry.ending)

    async def _write_text(self, entry: Entry) -> None:
        """The text of a job that is done already; one that the server refuses is left out."""
        job = entry.held.job
        try:
            ending = entry.ending
            if ending.outcome is not None:
                await self._database.run(store.set_outcome, ending.fence, ending.outcome, ending.result)
        except sa_exc.DBAPIError as error:
            if can_wait_out(error):
                raise
            logger.error("job %d (%s): its text could not be stored: SQLSTATE %s", job.id, job.kind, sqlstate(error))
        if entry.ending.slot_wait is not None:
            await self._database.run(store.free_slot, entry.ending.fence, entry.ending.slot_wait)
        self.recorded.written(entry, True)


async def _nothing_to_flush(fences: Iterable[Fence]) -> None:
    return None


def _worker(entry: Entry) -> int:
    return _worker_of(entry.held)


def _worker_of(held: Held) -> int:
    return held.job.worker_id
