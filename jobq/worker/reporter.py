"""Writes what handlers report of their jobs, all of them in one statement, once a second; else it sleeps."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import groupby

import anyio
import sqlalchemy.exc as sa_exc
from anyio.abc import TaskStatus

from jobq.database import Database
from jobq.faults import can_wait_out, sqlstate
from jobq.reports import merged
from jobq.store import reporting as store
from jobq.store.ending import Fence
from jobq.worker.link import Link
from jobq.worker.loops import wait_for
from jobq.worker.stats import Counters

logger = logging.getLogger("jobq.worker")
BETWEEN_SECONDS = 1.0


class Reporter:
    """Of each job the latest report under each name. What the fence refuses is counted, dropped, and a reason to look.

    An end is written after what was reported before it: the completer calls `flush`.
    """

    def __init__(
        self, database: Database, link: Link, counters: Counters, *, refused: Callable[[], None], stop: anyio.Event
    ) -> None:
        self._database = database
        self._link = link
        self._counters = counters
        self._refused = refused
        self._stop = stop
        self._lock = threading.Lock()  # handlers in threads report here
        self._pending: dict[Fence, dict[str, str]] = {}
        self._writing: dict[Fence, dict[str, str]] = {}
        self._turn = anyio.Lock()
        self._arrived = anyio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def note(self, fence: Fence, name: str, text: str) -> None:
        """Have a report written soon. From any thread; never waits."""
        with self._lock:
            is_first = not self._pending
            self._pending.setdefault(fence, {})[name] = text
        if is_first and self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._wake)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        self._loop = asyncio.get_running_loop()
        task_status.started()
        async with anyio.create_task_group() as group:
            group.start_soon(self._wake_at_the_end)
            while not self._stop.is_set():
                await self._arrived.wait()
                self._arrived = anyio.Event()
                await self._try()
                await wait_for(self._stop, BETWEEN_SECONDS)
        await self._try()  # of jobs that are given back

    async def run_once(self) -> None:
        """Write all that was reported; what somebody has locked waits for the next time."""
        async with self._turn:
            await self._write(self._take(list(self._pending)), waits=False)

    async def flush(self, fences: Iterable[Fence]) -> None:
        """Write what these jobs have reported before it returns, since their end is written next."""
        if not self._pending and not self._writing:
            return
        reported = [fence for fence in fences if fence in self._pending or fence in self._writing]
        if reported:
            async with self._turn:
                await self._write(self._take(reported), waits=True)

    async def _try(self) -> None:
        try:
            await self.run_once()
        except Exception as error:
            if not can_wait_out(error):
                raise
            await wait_for(self._stop, self._link.failed("reporter", error))
        else:
            self._link.worked("reporter")
        if self._pending:
            self._wake()

    def _take(self, fences: Iterable[Fence]) -> dict[Fence, dict[str, str]]:
        with self._lock:
            return {fence: self._pending.pop(fence) for fence in fences if fence in self._pending}

    def _put_back(self, reports: Mapping[Fence, dict[str, str]]) -> None:
        """Behind what was reported meanwhile."""
        with self._lock:
            for fence, texts in reports.items():
                self._pending[fence] = {**texts, **self._pending.get(fence, {})}

    async def _write(self, batch: dict[Fence, dict[str, str]], *, waits: bool) -> None:
        self._writing = dict(batch)
        try:
            for _, fences in groupby(sorted(batch, key=_worker), key=_worker):
                await self._write_some({fence: merged(batch[fence]) for fence in fences}, waits=waits)
        finally:  # also when the write was cut off
            self._put_back(self._writing)
            self._writing = {}

    async def _write_some(self, patches: Mapping[Fence, str], *, waits: bool) -> None:
        try:
            written, lost = await self._database.run(store.report, patches, waits=waits)
        except sa_exc.DBAPIError as error:
            if can_wait_out(error):
                raise
            await self._write_alone(patches, error, waits=waits)
            return
        for fence in written | lost:
            self._writing.pop(fence, None)
        if lost:
            self._counters.refused += len(lost)
            self._refused()

    async def _write_alone(self, patches: Mapping[Fence, str], error: sa_exc.DBAPIError, *, waits: bool) -> None:
        """The server refuses one of them: that is left out, the others are written."""
        if len(patches) > 1:
            for fence, text in patches.items():
                await self._write_some({fence: text}, waits=waits)
            return
        for fence in patches:
            logger.error("job %d: what it reported could not be stored: SQLSTATE %s", fence.id, sqlstate(error))
            del self._writing[fence]

    def _wake(self) -> None:
        self._arrived.set()

    async def _wake_at_the_end(self) -> None:
        await self._stop.wait()
        self._wake()


def _worker(fence: Fence) -> int:
    return fence.worker_id
