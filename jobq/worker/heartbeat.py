"""Keeps the lease alive from a thread and a connection of its own: a handler that blocks the loop must not lose it."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy.exc as sa_exc

from jobq.database import STATEMENT_LIMIT, Database
from jobq.executors.patience import AwakeClock
from jobq.faults import can_wait_out, is_connection_failure
from jobq.source import Source
from jobq.store import leasing as store
from jobq.store.ending import Fence
from jobq.worker.exiting import end_process
from jobq.worker.held import Held, HeldJobs
from jobq.worker.lease import Lease
from jobq.worker.link import Link
from jobq.worker.loops import with_jitter

logger = logging.getLogger("jobq.worker")
EXIT_STALLED = 70
OVERDUE = timedelta(seconds=60)  # past its own timeout by that much, and not settled: the loop no longer works


@dataclass(frozen=True, slots=True)
class Events:
    """What the thread tells and asks the loop; each is called in the loop's thread."""

    lease_lost: Callable[[int, str], None]
    jobs_lost: Callable[[Mapping[Fence, bool]], None]  # and whether each was cancelled by hand
    left_behind: Callable[[], int] = lambda: 0  # how many handlers could not be stopped


class Heartbeat:
    """Beats every sixth of the lease, tells the loop what was lost, and ends a process whose loop stands still.

    Its thread has an event loop of its own, which turns while a statement runs: so each has a limit, and a connection
    that swallows a beat without a word is replaced before the lease runs out.
    """

    def __init__(
        self, database: Database, lease: Lease, held: HeldJobs, link: Link, events: Events, *, stall: timedelta
    ) -> None:
        self._database = database
        self._lease = lease
        self._held = held
        self._link = link
        self._events = events
        self._stall = stall
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awake = AwakeClock(lease.clock, most=lease.length.total_seconds() / 3)
        self._turned_at = 0.0
        self._overdue: dict[Held, float] = {}  # since when, as `_awake` shows it
        self._left_behind = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to beat, from the thread of the loop."""
        self._loop = asyncio.get_running_loop()
        self._turned_at = self._awake.look()
        self._thread = threading.Thread(target=self.run, name="jobq-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; it is not waited for: it may be inside a statement that hangs."""
        self._stop.set()

    def run(self) -> None:
        """The thread's life."""
        interval = self._lease.length / 6
        with asyncio.Runner() as runner:
            while not self._stop.is_set():
                self._watch_loop()
                pause = runner.run(self._beat_or_wait(with_jitter(interval)))
                self._stop.wait(pause)
            runner.run(self._database.close())

    async def run_once(self) -> None:
        """One beat, then a look at which held jobs are still ours."""
        worker_id = self._lease.worker_id
        if worker_id is None:
            return
        sent_at = self._lease.clock()
        if not await self._database.run(store.beat, worker_id, left_behind=self._left_behind):
            self._tell(self._events.lease_lost, worker_id, "this worker was declared dead")
            return
        self._lease.extend(worker_id, sent_at=sent_at)
        if lost := await self._lost_jobs(worker_id):
            self._tell(self._events.jobs_lost, lost)

    async def _lost_jobs(self, worker_id: int) -> Mapping[Fence, bool]:
        """None while the table is locked: that must not keep the next beat waiting."""
        try:
            return await self._database.run(store.taken_from, self._held.fences(worker_id))
        except sa_exc.DBAPIError as error:
            if is_connection_failure(error) or not can_wait_out(error):
                raise
            return {}

    async def _beat_or_wait(self, interval: float) -> float:
        try:
            await self.run_once()
        except Exception as error:
            if not can_wait_out(error):
                logger.exception("the heartbeat failed; trying again")
            return min(self._link.failed("heartbeat", error), interval)
        self._link.worked("heartbeat")
        return interval

    def _watch_loop(self) -> None:
        """End the process when its loop no longer turns: its jobs would be kept from everybody for ever.

        Where the whole process stood still the loop had no time either: that hardly counts.
        """
        now = self._awake.look()
        stands_for = now - self._turned_at
        self._tell(self._turned)
        if stands_for > self._stall.total_seconds():
            self._end_process(f"the event loop has not turned for {stands_for:.0f} s (a handler blocks it)")
        self._watch_jobs(now)

    def _watch_jobs(self, now: float) -> None:
        overdue = self._held.overdue(self._lease.clock())
        self._overdue = {held: self._overdue.get(held, now) for held in overdue}
        for held, since in self._overdue.items():
            if now - since > OVERDUE.total_seconds():
                job = held.job
                self._end_process(f"job {job.id} ({job.kind}) is 60 s past its timeout and cannot be stopped")

    def _turned(self) -> None:
        self._turned_at = self._awake.seconds
        self._left_behind = self._events.left_behind()

    def _end_process(self, reason: str) -> None:
        def say() -> None:
            logger.critical("%s: the process ends, its jobs are rescued when the lease runs out", reason)
            faulthandler.dump_traceback(file=sys.__stderr__ or 2, all_threads=True)

        end_process(EXIT_STALLED, say)

    def _tell(self, function: Callable[..., None], *args: object) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(function, *args)


def database_for(source: Source, lease: timedelta, *, name: str) -> Database:
    """One connection. A statement may take a third of the lease, its answer half: then there is time for another."""
    limit = min(max(lease / 3, timedelta(seconds=0.5)), STATEMENT_LIMIT)
    return Database(source, name=name, size=1, statement_limit=limit, answer_limit=limit * 1.5)
