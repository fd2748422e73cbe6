"""Keeps a worker in step with the database: which queues have work, and what they are set to."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import anyio
from anyio.abc import TaskStatus

from jobq.database import Database
from jobq.queue_settings import QueueSettings, said_of
from jobq.store import claiming as store
from jobq.store.claiming import QueueRow
from jobq.worker.groups import Groups
from jobq.worker.limited import LimitedQueues
from jobq.worker.link import Link
from jobq.worker.loops import every

logger = logging.getLogger("jobq.worker")
INTERVAL = timedelta(seconds=5)


class Surveyor:
    """Every 5 s: serve the queues asked for, or, with none named, the declared ones and all that have open jobs.

    What the database says of a queue wins over what the code says; where they differ, that is said once.
    """

    def __init__(
        self,
        database: Database,
        link: Link,
        lanes: Groups,
        limited: LimitedQueues,
        *,
        queues: Sequence[str] | None,
        used: Iterable[str],
        declared: Mapping[str, QueueSettings],
        stop: anyio.Event,
    ) -> None:
        self.live_workers = 1
        self._database = database
        self._link = link
        self._lanes = lanes
        self._limited = limited
        self._queues = queues
        self._used = {*used, *declared}
        self._declared = declared
        self._warned: set[str] = set()
        self._stop = stop

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await every(INTERVAL, self.run_once, service="surveyor", link=self._link, stop=self._stop)

    async def run_once(self) -> None:
        """One look."""
        survey = await self._database.run(store.survey)
        self.live_workers = max(1, survey.live_workers)
        names = set(self._queues) if self._queues is not None else survey.queues | self._used
        weights = {**{name: settings.weight for name, settings in self._declared.items()}, **survey.weights}
        limited = {row.name: bool(row.fifo) for row in survey.settings if row.is_limited and row.name in names}
        self._lanes.serve({name: weights.get(name, 1) for name in names - limited.keys()})
        in_order = frozenset(name for name, fifo in limited.items() if fifo)
        self._limited.serve({name: weights.get(name, 1) for name in limited}, in_order)
        for row in survey.settings:
            self._compare(row)

    def admits(self, queue: str) -> bool:
        """Whether an unlimited queue that a notification names is served here; with none named it is from now on."""
        if self._queues is None:
            self._lanes.add(queue)
        return queue in self._lanes.queues

    def _compare(self, row: QueueRow) -> None:
        """Say once what the code says otherwise; another service, or another version, may have said it first."""
        if (code := self._declared.get(row.name)) is None:
            return
        mine = said_of(code.weight, code.fifo, code.concurrency)
        theirs = said_of(row.weight, row.fifo, row.concurrency)
        said = f"queue {row.name}: the code says {mine}, the database {theirs}"
        if mine != theirs and said not in self._warned:
            self._warned.add(said)
            logger.warning("%s, which is what counts (jobq queue set %s changes it)", said, row.name)
