"""Keeps the slots of limited queues whose handler was left behind, and frees them once it has ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import anyio
from anyio.abc import TaskStatus

from jobq.database import Database
from jobq.store import ending as store
from jobq.store.ending import Fence
from jobq.worker.link import Link
from jobq.worker.loops import every

LOOK = timedelta(seconds=0.5)


class SlotKeeper:
    """A handler that could not be stopped still runs: were its slot free, two jobs of the queue would run at a time."""

    def __init__(
        self,
        database: Database,
        link: Link,
        *,
        still_runs: Callable[[], set[int]],
        freed: Callable[[timedelta], None],
        stop: anyio.Event,
    ) -> None:
        self._database = database
        self._link = link
        self._still_runs = still_runs
        self._freed = freed
        self._stop = stop
        self._kept: dict[Fence, timedelta] = {}

    def keep(self, fence: Fence, wait: timedelta) -> bool:
        """Whether the handler of this attempt still runs: then its slot is freed later, to be ready after `wait`."""
        if fence.id not in self._still_runs():
            return False
        self._kept[fence] = wait
        return True

    @property
    def ids(self) -> list[int]:
        """The jobs whose slots are kept."""
        return [fence.id for fence in self._kept]

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await every(LOOK, self.run_once, service="slots", link=self._link, stop=self._stop)

    async def run_once(self) -> None:
        """Free the slots of handlers that have ended."""
        for fence, wait in list(self._kept.items()):
            if fence.id not in self._still_runs():
                await self._database.run(store.free_slot, fence, wait)
                del self._kept[fence]
                self._freed(wait)
