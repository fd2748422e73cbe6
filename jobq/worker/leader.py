"""One worker of the fleet maintains: it is elected through a row with a lease, and cleans and sums up while in office.

Leadership guards nothing else: jobs, schedules and rescues do not depend on it.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from time import monotonic

import anyio
from anyio.abc import TaskStatus

from jobq.cleaner import Cleaning
from jobq.database import Database
from jobq.store import cleaning, leading
from jobq.store.leading import Office
from jobq.worker.lease import Lease
from jobq.worker.link import Link
from jobq.worker.loops import every, wait_for
from jobq.worker.unserved import UnservedKinds

logger = logging.getLogger("jobq.worker")
TERM_LEASE = timedelta(seconds=10)  # with LOOK: a leader that was killed is followed within 12 s
RENEW = timedelta(seconds=4)  # sent within 5.1 s, and when that fails again within 2 s, as often as it takes
ASK = timedelta(seconds=3)  # with LOOK: a leader that has left is followed within 5 s
LOOK = timedelta(seconds=1)
MAINTAIN = timedelta(seconds=30)
FORGET = timedelta(minutes=10)  # sums are kept for days


class Election:
    """Asks every 3 s whether the office is free, and when the lease of who is in it is over; takes it; renews it."""

    def __init__(self, database: Database, link: Link, lease: Lease, *, name: str, stop: anyio.Event) -> None:
        self._database = database
        self._link = link
        self._lease = lease
        self._name = name
        self._stop = stop
        self._office: Office | None = None
        self._renewed_at = 0.0  # when the last good renewal was sent
        self._ask_at = 0.0  # before, there is no need to ask whether the office is free

    @property
    def office(self) -> Office | None:
        """The office, as far as this process knows: what is written in it is fenced all the same."""
        is_fresh = monotonic() - self._renewed_at < TERM_LEASE.total_seconds()
        is_same = self._office is not None and self._office.worker_id == self._lease.worker_id
        return self._office if is_fresh and is_same else None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await every(LOOK, self.run_once, service="leader", link=self._link, stop=self._stop)

    async def run_once(self) -> None:
        """Campaign, or renew, when it is time."""
        if (office := self.office) is None:
            if monotonic() >= self._ask_at:
                await self._campaign()
        elif monotonic() - self._renewed_at >= RENEW.total_seconds():
            await self._renew(office)

    async def _campaign(self) -> None:
        if (worker_id := self._lease.worker_id) is None or not await self._is_free():
            return
        sent_at = monotonic()
        self._office = await self._database.run(leading.campaign, worker_id, TERM_LEASE)
        if self._office is not None:
            self._renewed_at = sent_at
            logger.info("worker %s is the leader, in term %d", self._name, self._office.term)

    async def _is_free(self) -> bool:
        asked_at = monotonic()
        left = await self._database.run(leading.taken_for)
        self._ask_at = asked_at + min(left, ASK.total_seconds())
        return left == 0

    async def _renew(self, office: Office) -> None:
        sent_at = monotonic()
        if await self._database.run(leading.renew, office, TERM_LEASE):
            self._renewed_at = sent_at
        else:
            self._office = None
            logger.info("worker %s is no longer the leader (term %d)", self._name, office.term)


class Maintainer:
    """While in office, at once and then every 30 s: sums up what has ended, cleans, and says what nobody can run."""

    def __init__(self, database: Database, link: Link, election: Election, *, stop: anyio.Event) -> None:
        self._database = database
        self._link = link
        self._election = election
        self._stop = stop
        self._unserved = UnservedKinds(database)
        self._term: int | None = None  # in which the last round was
        self._next_at = 0.0
        self._forget_at = 0.0

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await every(LOOK, self._look, service="maintainer", link=self._link, stop=self._stop)

    async def _look(self) -> None:
        office = self._election.office
        if office is None or (office.term == self._term and monotonic() < self._next_at):
            return
        await self.run_once(office)
        self._term, self._next_at = office.term, monotonic() + MAINTAIN.total_seconds()

    async def run_once(self, office: Office) -> int:
        """One round; how many jobs were deleted. In this order: what is deleted has been counted."""
        await self._sum_up(office)
        deleted = await self._clean(office)
        await self._forget(office)
        if deleted:
            logger.info("deleted %d jobs that were kept for their time", deleted)
        await self._unserved.run_once()
        return deleted

    async def _sum_up(self, office: Office) -> None:
        while not self._stop.is_set():
            summed = await self._database.transaction(leading.sum_up, office)
            if summed.is_last:
                return

    async def _forget(self, office: Office) -> None:
        """Sums that have been kept for their time."""
        if monotonic() >= self._forget_at:
            await self._database.run(cleaning.delete_old_sums, office)
            self._forget_at = monotonic() + FORGET.total_seconds()

    async def _clean(self, office: Office) -> int:
        """A pause between two chunks as long as the chunk took: nobody has to wait for the disk behind this."""
        pass_, deleted = Cleaning(office), 0
        while not pass_.is_over and not self._stop.is_set():
            deleted += await self._database.run(pass_.step)
            await wait_for(self._stop, 0.0 if pass_.is_over else pass_.pause_seconds)
        return deleted
