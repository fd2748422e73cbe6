"""Notices in the loop that the lease has run out: the heartbeat may hang in a statement and cannot say so itself."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from anyio.abc import TaskStatus

from jobq.worker.lease import Lease
from jobq.worker.loops import wait_for

SHORTEST_PAUSE_SECONDS = 0.01


class Guard:
    """Looks whether a beat has succeeded within the last lease: just when it would run out, and six times before."""

    def __init__(self, lease: Lease, *, lost: Callable[[int, str], None], stop: anyio.Event) -> None:
        self._lease = lease
        self._lost = lost
        self._stop = stop

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while not await wait_for(self._stop, self._pause()):
            await self.run_once()

    def _pause(self) -> float:
        return max(SHORTEST_PAUSE_SECONDS, min(self._lease.length.total_seconds() / 6, self._lease.seconds_left))

    async def run_once(self) -> None:
        """One look."""
        worker_id = self._lease.worker_id
        if worker_id is not None and self._lease.has_run_out:
            self._lost(worker_id, f"no beat has succeeded for {self._lease.length}")
