"""The worker's row: joining the fleet under a new id, giving back what an old id still carries, leaving."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from time import monotonic

from jobq.database import Database
from jobq.model import Position
from jobq.store import leasing as store
from jobq.store.ending import Fence
from jobq.store.leasing import Published, PublishedQueue, Registration
from jobq.worker.held import HeldJobs
from jobq.worker.keeper import SlotKeeper
from jobq.worker.lease import Lease, new_worker_id

logger = logging.getLogger("jobq.worker")


class Membership:
    """A worker's place in the fleet. A process that loses its lease goes on under a new id."""

    def __init__(
        self,
        database: Database,
        lease: Lease,
        held: HeldJobs,
        keeper: SlotKeeper,
        *,
        name: str,
        queues: Sequence[str] | None,
        kinds: Sequence[str],
        schedules: Sequence[str],
        concurrency: int,
        channel: str,
    ) -> None:
        self._database = database
        self._lease = lease
        self._held = held
        self._keeper = keeper
        self._name = name
        self._queues = queues
        self._kinds = kinds
        self._schedules = schedules
        self._concurrency = concurrency
        self._channel = channel
        self._former: int | None = None  # an id that was lost: its row may still be there

    async def publish(self, kinds: Iterable[Published], queues: Iterable[PublishedQueue]) -> None:
        """Write what the code says of its handlers and queues."""
        await self._database.transaction(store.publish, list(kinds), list(queues))

    async def join(self) -> None:
        """Register under a new id, after giving back what a lost one may still carry."""
        if self._former is not None:
            await self._give_up(self._former, None)
            self._former = None
        worker_id, sent_at = new_worker_id(), monotonic()
        await self._database.run(store.register, self._registration(worker_id))
        self._lease.begin(worker_id, sent_at=sent_at)

    def lose(self, worker_id: int, reason: str) -> None:
        """The lease of this id is gone, or may be: no claim and no beat under it any more."""
        logger.warning("lease lost: %s; what ran is stopped, going on under a new id", reason)
        self._lease.end()
        self._former = worker_id

    async def reconcile(self) -> list[Position]:
        """Give back the jobs that carry this worker's id and are unknown to it: a claim's answer was lost."""
        worker_id = self._lease.worker_id
        if worker_id is None:
            return []
        return await self._database.transaction(
            store.reconcile,
            worker_id=worker_id,
            held=self._held.fences(worker_id),
            channel=self._channel,
            kept_slots=self._keeper.ids,
        )

    async def leave(self, *, everything: bool) -> int:
        """Leave the fleet and give back what is held; returns how many. `everything`: also what is not known of."""
        worker_id = self._lease.worker_id or self._former
        if worker_id is None:
            return 0
        given = await self._give_up(worker_id, None if everything else self._held.fences(worker_id))
        self._lease.end()
        self._former = None
        return given

    async def _give_up(self, worker_id: int, held: list[Fence] | None) -> int:
        return await self._database.transaction(
            store.leave,
            worker_id=worker_id,
            held=held,
            channel=self._channel,
            kept_slots=self._keeper.ids,
            wait=self._lease.length,
        )

    def _registration(self, worker_id: int) -> Registration:
        return Registration(
            id=worker_id,
            name=self._name,
            hostname=socket.gethostname(),
            pid=os.getpid(),
            version=version("jobq"),
            queues=self._queues,
            kinds=self._kinds,
            concurrency=self._concurrency,
            lease=self._lease.length,
            schedules=self._schedules,
        )


def default_name() -> str:
    """For people; what tells workers apart is their id."""
    return f"{socket.gethostname()}:{os.getpid()}"
