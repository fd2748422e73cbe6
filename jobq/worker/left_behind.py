"""Handlers that could not be stopped: their jobs went on without them, they still run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Any

from jobq.executors import Executor
from jobq.worker.held import Held, Stop

logger = logging.getLogger("jobq.worker")


class LeftBehind:
    """By the ids of their jobs: tasks of the worker's own, and what its executors say."""

    def __init__(self, executors: Collection[Executor]) -> None:
        self.on_new: Callable[[str], None] = lambda _queue: None
        self._executors = executors
        self._tasks: dict[int, asyncio.Future[Any]] = {}

    def __contains__(self, id_: int) -> bool:
        return id_ in self._tasks or any(id_ in executor.left_behind for executor in self._executors)

    @property
    def ids(self) -> set[int]:
        ids = {id_ for id_, task in self._tasks.items() if not task.done()}
        return ids.union(*(executor.left_behind for executor in self._executors))

    def add(self, id_: int, task: asyncio.Future[Any]) -> None:
        """The task of a handler that swallowed its cancellation; here until it ends."""
        self._tasks[id_] = task
        task.add_done_callback(lambda _: self._tasks.pop(id_, None))

    def tell(self, held: Held, reason: Stop) -> None:
        """Say so; what it has in its hand is worth nothing from now on."""
        if held.context is not None:
            held.context.lose()
        logger.error(
            "job %d (%s): its handler did not stop (%s) and is left behind, still running",
            held.job.id,
            held.job.kind,
            reason.value,
        )
        self.on_new(held.job.queue)
