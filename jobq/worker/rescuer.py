"""Takes back the jobs of lost workers."""

from __future__ import annotations

import logging
from datetime import timedelta
from time import monotonic

import anyio
from anyio.abc import TaskStatus

from jobq.database import Database
from jobq.store import rescuing as store
from jobq.store.rescuing import Rescue
from jobq.worker.link import Link
from jobq.worker.loops import every
from jobq.worker.stats import Counters

logger = logging.getLogger("jobq.worker")
LOOK_EVERYWHERE = timedelta(minutes=5)
LONG = timedelta(days=3650).total_seconds()


class Rescuer:
    """Takes back the jobs whose worker's lease ran out: to pending, or to dead when no attempt is left.

    Run by every worker: what one pass holds locked the others step over.
    """

    def __init__(
        self,
        database: Database,
        link: Link,
        counters: Counters,
        *,
        interval: timedelta,
        channel: str,
        stop: anyio.Event,
    ) -> None:
        self._database = database
        self._link = link
        self._counters = counters
        self._interval = interval
        self._channel = channel
        self._stop = stop
        self._connected_at: float | None = None  # None: never been away
        self._look_from = 0.0  # look for lost ids everywhere from this moment on: at start, and after a pass with gaps

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await every(self._interval, self.run_once, service="rescuer", link=self._link, stop=self._stop)

    async def run_once(self) -> Rescue:
        """One pass."""
        everywhere = monotonic() >= self._look_from
        connected_for = LONG if self._connected_at is None else monotonic() - self._connected_at
        self._look_from, self._connected_at = 0.0, monotonic()  # as they are after a pass that fails
        rescue = await self._database.transaction(
            store.rescue,
            connected_for=timedelta(seconds=connected_for),
            look_everywhere=everywhere,
            channel=self._channel,
        )
        self._connected_at = None if connected_for == LONG else monotonic() - connected_for
        if rescue.is_complete:
            self._look_from = monotonic() + LOOK_EVERYWHERE.total_seconds()
        self._say(rescue)
        return rescue

    def _say(self, rescue: Rescue) -> None:
        if rescue.lost_workers:
            logger.warning("lost workers: %s", ", ".join(rescue.lost_workers))
        for job in rescue.jobs:
            logger.warning(
                "job %d (%s): its worker was lost in attempt %d; now %s", job.id, job.kind, job.attempt, job.state
            )
        self._counters.rescued += len(rescue.jobs)
