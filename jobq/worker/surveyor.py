"""Keeps the lanes in step with the database: which queues have work, what they are set to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import anyio
from anyio.abc import TaskStatus

from jobq.database import Database
from jobq.store import claiming as store
from jobq.worker.lanes import Lanes
from jobq.worker.link import Link
from jobq.worker.loops import every

INTERVAL = timedelta(seconds=5)


class Surveyor:
    """Every 5 s: serve the queues asked for, or, with none named, the declared ones and all that have open jobs."""

    def __init__(
        self,
        database: Database,
        link: Link,
        lanes: Lanes,
        *,
        queues: Sequence[str] | None,
        declared: Mapping[str, int],
        stop: anyio.Event,
    ) -> None:
        self.live_workers = 1
        self._database = database
        self._link = link
        self._lanes = lanes
        self._queues = queues
        self._declared = declared
        self._stop = stop

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await every(INTERVAL, self.run_once, service="surveyor", link=self._link, stop=self._stop)

    async def run_once(self) -> None:
        """One look. What the database says of a weight wins over what the code says."""
        survey = await self._database.run(store.survey)
        self.live_workers = max(1, survey.live_workers)
        names = set(self._queues) if self._queues is not None else survey.queues | set(self._declared)
        weights = {**self._declared, **survey.weights}
        self._lanes.serve({name: weights.get(name, 1) for name in names})

    def admits(self, queue: str) -> bool:
        """Whether a queue that a notification names is served here; with no queues named it is from now on."""
        if self._queues is None:
            self._lanes.add(queue)
        return queue in self._lanes.queues
