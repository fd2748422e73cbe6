"""Takes back the jobs of lost workers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from time import monotonic

import anyio
from anyio.abc import TaskStatus

from jobq.database import Database
from jobq.spans import span
from jobq.store import rescuing as store
from jobq.store.rescuing import Rescue
from jobq.worker.link import Link
from jobq.worker.loops import every
from jobq.worker.server_clock import ServerClock
from jobq.worker.stats import Counters

logger = logging.getLogger("jobq.worker")
LOOK_EVERYWHERE = timedelta(minutes=5)  # the leader
LONG = timedelta(days=3650)


class Rescuer:
    """Takes back the jobs whose worker's lease ran out: to pending, or to dead when no attempt is left.

    Run by every worker: what one pass holds locked the others step over. A glance that locks nothing comes first. Jobs
    of workers without a row are looked for at a worker's start, after a pass with gaps, and by the leader every 5 min.
    """

    def __init__(
        self,
        database: Database,
        link: Link,
        counters: Counters,
        *,
        interval: timedelta,
        channel: str,
        is_leader: Callable[[], bool],
        stop: anyio.Event,
    ) -> None:
        self._database = database
        self._link = link
        self._counters = counters
        self._interval = interval
        self._channel = channel
        self._is_leader = is_leader
        self._stop = stop
        self._clock = ServerClock()
        self._connected_at: float | None = None  # None: never been away
        self._look_from = 0.0  # when the leader looks everywhere; 0: at once, whoever it is

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await every(self._interval, self.run_once, service="rescuer", link=self._link, stop=self._stop)

    async def run_once(self) -> Rescue:
        """One pass."""
        look_from, connected_at = self._look_from, self._connected_at
        connected_for = LONG if connected_at is None else timedelta(seconds=monotonic() - connected_at)
        asked = monotonic()
        self._look_from, self._connected_at = 0.0, asked  # as they are after a pass that fails
        glance = await self._database.run(store.lost_workers, connected_for=connected_for)
        if self._was_set_forward(glance.at, asked):
            connected_at, connected_for = asked, timedelta(0)  # as after an outage
        everywhere = not look_from or (monotonic() >= look_from and self._is_leader())
        is_needed = (glance.lost and connected_for) or everywhere
        rescue = await self._rescue(connected_for, everywhere) if is_needed else Rescue()
        self._connected_at = None if connected_at is None else monotonic() - connected_for.total_seconds()
        if rescue.is_complete:
            self._look_from = monotonic() + LOOK_EVERYWHERE.total_seconds() if everywhere else look_from
        self._say(rescue)
        return rescue

    def _was_set_forward(self, at: datetime, asked: float) -> bool:
        """Whether the server's clock was: then leases that seem to have run out say nothing."""
        ahead = self._clock.was_set_forward(at, asked=asked, answered=monotonic())
        if ahead is not None:
            logger.warning("the server's clock was set forward by %s: leases are judged a lease from now", span(ahead))
        return ahead is not None

    async def _rescue(self, connected_for: timedelta, everywhere: bool) -> Rescue:
        return await self._database.transaction(
            store.rescue, connected_for=connected_for, look_everywhere=everywhere, channel=self._channel
        )

    def _say(self, rescue: Rescue) -> None:
        if rescue.lost_workers:
            logger.warning("lost workers: %s", ", ".join(rescue.lost_workers))
        for job in rescue.jobs:
            logger.warning(
                "job %d (%s): its worker was lost in attempt %d; now %s", job.id, job.kind, job.attempt, job.state
            )
        self._counters.rescued += len(rescue.jobs)
