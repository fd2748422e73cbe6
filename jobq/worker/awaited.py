"""Tells those who wait for the end of a job that it is there; costs nothing while nobody waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic

import anyio
from anyio.abc import TaskStatus

from jobq.database import Database
from jobq.faults import can_wait_out
from jobq.notify import is_on
from jobq.store import reporting as store
from jobq.worker.link import Link
from jobq.worker.loops import wait_for

MOST = 10_000  # jobs that are remembered: anybody may notify
KEEP_SECONDS = 60.0  # who still waits says so again before that


class Awaited:
    """Remembers for which jobs somebody waits. Only a quicker answer depends on it: who waits also looks."""

    def __init__(
        self, database: Database, link: Link, *, stop: anyio.Event, clock: Callable[[], float] = monotonic
    ) -> None:
        self._database = database
        self._link = link
        self._stop = stop
        self._clock = clock
        self._until: dict[int, float] = {}  # the one that was said last comes last
        self._ended: list[int] = []
        self._arrived = anyio.Event()

    @property
    def number(self) -> int:
        """Of how many jobs it is known that somebody waits."""
        return len(self._until)

    def add(self, id_: int) -> None:
        """Somebody says that it waits for the end of this job."""
        self._until.pop(id_, None)
        self._until[id_] = self._clock() + KEEP_SECONDS
        while len(self._until) > MOST or self._is_over(next(iter(self._until))):
            del self._until[next(iter(self._until))]

    def ended(self, ids: Iterable[int]) -> None:
        """The ends of these jobs are recorded."""
        if not self._until:
            return
        for id_ in ids:
            if self._until.pop(id_, None) is not None:
                self._ended.append(id_)
                self._arrived.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        async with anyio.create_task_group() as group:
            group.start_soon(self._wake_at_the_end)
            while not self._stop.is_set():
                await self._arrived.wait()
                await self._try()

    async def run_once(self) -> None:
        """Tell of what has ended."""
        self._arrived = anyio.Event()
        ended, self._ended = self._ended, []
        if ended and is_on():
            await self._database.run(store.tell_ended, ended)

    async def _try(self) -> None:
        try:
            await self.run_once()
        except Exception as error:
            if not can_wait_out(error):
                raise
            await wait_for(self._stop, self._link.failed("awaited", error))
        else:
            self._link.worked("awaited")

    def _is_over(self, id_: int) -> bool:
        return self._until[id_] < self._clock()

    async def _wake_at_the_end(self) -> None:
        await self._stop.wait()
        self._arrived.set()
