"""Looks which jobs were taken from this worker, when it is told so: the heartbeat would see it up to 10 s later."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio
from anyio.abc import TaskStatus

from jobq.database import Database
from jobq.faults import can_wait_out
from jobq.store import leasing as store
from jobq.store.ending import Fence
from jobq.worker.held import HeldJobs
from jobq.worker.lease import Lease
from jobq.worker.link import Link
from jobq.worker.loops import wait_for

BETWEEN_SECONDS = 0.1  # anybody may notify: a flood of it is ten reads of the held ids a second


class Losses:
    """Believes the database alone: a notification is a reason to look.

    `claim_in_flight`: a number while a claim is waited for, another one for the next: what that has taken is not held
    yet, so there is one more look once it is answered.
    """

    def __init__(
        self,
        database: Database,
        link: Link,
        lease: Lease,
        held: HeldJobs,
        *,
        taken: Callable[[Mapping[Fence, bool]], None],
        claim_in_flight: Callable[[], int | None],
        stop: anyio.Event,
    ) -> None:
        self._database = database
        self._link = link
        self._lease = lease
        self._held = held
        self._taken = taken
        self._claim_in_flight = claim_in_flight
        self._claim: int | None = None
        self._stop = stop
        self._told = anyio.Event()

    def tell(self, worker_id: int) -> None:
        """Somebody says that jobs were taken from this worker."""
        if worker_id == self._lease.worker_id:
            self.look()

    def look(self) -> None:
        """There is a reason to look."""
        self._claim = self._claim_in_flight()
        self._told.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        async with anyio.create_task_group() as group:
            group.start_soon(self._look_at_the_end)
            while not self._stop.is_set():
                await self._told.wait()
                self._told = anyio.Event()
                is_answered = self._claim is None or self._claim != self._claim_in_flight()
                await self._try()
                await wait_for(self._stop, BETWEEN_SECONDS)
                if not is_answered:
                    self._told.set()

    async def run_once(self) -> None:
        """One look: what is no longer ours is stopped."""
        worker_id = self._lease.worker_id
        fences = [] if worker_id is None else self._held.fences(worker_id)
        if fences:
            self._taken(await self._database.run(store.taken_from, fences))

    async def _try(self) -> None:
        try:
            await self.run_once()
        except Exception as error:
            if not can_wait_out(error):
                raise
            self.look()
            await wait_for(self._stop, self._link.failed("losses", error))
        else:
            self._link.worked("losses")

    async def _look_at_the_end(self) -> None:
        await self._stop.wait()
        self.look()
