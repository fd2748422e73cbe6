"""Writes the ends of jobs, fenced; what the fence refuses is counted, said and dropped."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from operator import attrgetter
from time import monotonic

import sqlalchemy.exc as sa_exc

from jobq.database import Database
from jobq.describe import as_json, describe, message_of
from jobq.events import EndCallback, ErrorEvent, JobEnd, tell
from jobq.faults import can_wait_out, sqlstate
from jobq.model import State
from jobq.outcomes import PauseQueue
from jobq.retention import kept_for
from jobq.spans import span
from jobq.store import ending as store
from jobq.store.ending import Ending, Fence
from jobq.verdict import DONE, Ended, judge, word_of
from jobq.worker.entries import Batch, Entry
from jobq.worker.held import Held, HeldJobs
from jobq.worker.joblog import JobLog, one_line
from jobq.worker.link import Link
from jobq.worker.stats import Counters

logger = logging.getLogger("jobq.worker")
_BY_ID = attrgetter("job.id")
UNTRANSLATABLE = "22P05"


class Recorder:
    """One batch after the other. A batch may be written again: what is recorded already is held no longer."""

    def __init__(
        self, database: Database, link: Link, counters: Counters, held: HeldJobs, *, name: str, channel: str
    ) -> None:
        self.on_freed: Callable[[timedelta], None] = lambda wait: None  # called when a slot was freed
        self.on_paused: Callable[[str], None] = lambda queue: None  # called when a handler has paused its queue
        self.on_end: Sequence[EndCallback] = ()  # called for each end that is recorded
        self.on_recorded: Callable[[Iterable[int]], None] = lambda ids: None  # called with jobs that ended for good
        self.flush: Callable[[Iterable[Fence]], Awaitable[None]] = _nothing_to_flush  # writes what was reported before
        self.has_unrecorded = False
        self.is_unsure = False  # a try got no answer, or only in part: what the fence refuses now, it may have written
        self._held = held
        self._database = database
        self._link = link
        self._counters = counters
        self._name = name
        self._channel = channel
        self._log = JobLog()

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
        jobs = [held.job for held in group]
        ids, attempts, outcomes = [job.id for job in jobs], [job.attempt for job in jobs], [h.outcome for h in group]
        rows = ids, attempts, [job.place for job in jobs], outcomes
        try:
            mine = await self._database.run(store.finish_done, *rows, worker_id=worker_id, keep=keep)
        except sa_exc.DBAPIError as error:
            self.is_unsure = True  # some of them may have been written before
            if can_wait_out(error):
                raise
            for held in group:  # one of them is refused: find it, record the others
                await self._write_one(Entry(held, Ending(held.fence, State.DONE, held.outcome, keep=keep), DONE, False))
            return
        if mine is not None and self.is_unsure:
            mine |= await self._database.run(store.recorded, [held.fence for held in group])
        if mine is None or len(mine) == len(group):
            self._ended_well(group, ids)
        else:
            self._ended_well([held for held in group if held.job.id in mine], mine)
            for held in group:
                if held.job.id not in mine:
                    self._refused(held)
        self._held.drop_all(group)

    def _ended_well(self, group: Iterable[Held], ids: Iterable[int]) -> None:
        for outcome, number in Counter([held.outcome for held in group]).items():
            self._counters.count(word_of(outcome), number)
        for held in group:
            if self._log.is_full:
                break
            self._log.ended(held, word_of(held.outcome), held.outcome)
        self.on_recorded(ids)
        if self.on_end:
            for held in group:
                tell(self.on_end, _end_of(held, word_of(held.outcome)))

    async def _give_back(self, given_back: Iterable[Held]) -> None:
        held = [each for each in given_back if self._held.has(each)]
        for _, group in groupby(sorted(held, key=_worker_of), key=_worker_of):
            fences = [each.fence for each in group]
            given = await self._database.run(store.give_back, fences, channel=self._channel)
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
            mine = await self._finish([entry.ending for entry in entries])
        except sa_exc.DBAPIError as error:
            if can_wait_out(error):
                raise
            for entry in entries:  # one of them is refused: find it, record the others
                await self._write_one(entry)
            return
        for entry in entries:
            self._written(entry, entry.held.job.id in mine)

    async def _write_one(self, entry: Entry) -> None:
        try:
            self._written(entry, await self._try(entry))
        except sa_exc.DBAPIError as error:
            if can_wait_out(error):
                raise
            await self._write_refused(entry, error)

    async def _write_refused(self, entry: Entry, error: sa_exc.DBAPIError) -> None:
        """The server refuses this one row: the attempt fails with that, in words that the server has no part in."""
        problem = RuntimeError(f"the result could not be stored: SQLSTATE {sqlstate(error)}{_in_ascii(entry, error)}")
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
            self.has_unrecorded = True
            self._held.drop(entry.held)

    async def _try(self, entry: Entry) -> bool:
        ending = entry.ending
        if ending.state is not State.PENDING:
            return await self._finish_one(ending)
        if entry.verdict is not None and entry.verdict.pause is not None:
            is_mine = await self._pause(entry, entry.verdict.pause)
        else:
            is_mine = await self._database.run(store.put_back, ending)
        return is_mine or (self.is_unsure and await self._database.run(store.was_put_back, ending))

    async def _finish_one(self, ending: Ending) -> bool:
        if ending.slot_wait is None:
            return ending.fence.id in await self._finish([ending])
        is_mine = await self._database.run(store.finish_limited, ending)
        return is_mine or (self.is_unsure and bool(await self._database.run(store.recorded, [ending.fence])))

    async def _pause(self, entry: Entry, pause: PauseQueue) -> bool:
        """Pause the job's queue with the job put back. Whoever begins a pause tells of it: one word in the fleet."""
        held = entry.held
        is_mine, began = await self._database.run(
            store.pause_and_put_back, entry.ending, queue=held.job.queue, channel=self._channel
        )
        if began:
            why = one_line(message_of(pause))
            logger.warning("queue %s is paused for %s: %s", held.job.queue, span(pause.duration), why)
            self.on_paused(held.job.queue)
            tell(self._link.callbacks(), ErrorEvent(held.view, pause, held.job.attempt, final=False))
        return is_mine

    async def _finish(self, endings: Sequence[Ending]) -> set[int]:
        mine = await self._database.run(store.finish, endings)
        missing = [ending.fence for ending in endings if ending.fence.id not in mine]
        if missing and self.is_unsure:
            mine |= await self._database.run(store.recorded, missing)
        return mine

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
        self._written(entry, True)

    def _written(self, entry: Entry, is_mine: bool) -> None:
        if entry.ending.slot_wait is not None:
            self.on_freed(entry.ending.slot_wait)
        if entry.verdict is None:
            pass
        elif is_mine:
            self._counters.count(entry.verdict.word)
            self._log.ended(entry.held, entry.verdict.word, entry.verdict.outcome)
            if entry.ending.state is not State.PENDING:
                self.on_recorded([entry.held.job.id])
            if self.on_end:
                tell(self.on_end, _end_of(entry.held, entry.verdict.word))
        else:
            self._refused(entry.held)
        self._held.drop(entry.held)

    def _refused(self, held: Held) -> None:
        self._counters.refused += 1
        logger.warning(
            "job %d (%s): the lease was lost, another hand has the job; the result of attempt %d is dropped",
            held.job.id,
            held.job.kind,
            held.job.attempt,
        )


async def _nothing_to_flush(fences: Iterable[Fence]) -> None:
    return None


def _in_ascii(entry: Entry, error: sa_exc.DBAPIError) -> str:
    """What was to be said, where the database's encoding lacks a letter of it: any has those of ASCII."""
    if sqlstate(error) != UNTRANSLATABLE or entry.ending.outcome is None:
        return ""
    return f" ({ascii(entry.ending.outcome)[1:-1]})"


def _end_of(held: Held, word: str) -> JobEnd:
    wait = max(held.job.waited, timedelta(0))
    return JobEnd(held.job.queue, held.job.kind, word, wait, timedelta(seconds=monotonic() - held.started))


def _worker(entry: Entry) -> int:
    return _worker_of(entry.held)


def _worker_of(held: Held) -> int:
    return held.job.worker_id
