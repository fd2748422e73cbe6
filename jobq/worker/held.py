"""What a worker holds: every job from its claim until its end is recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any

from jobq.context import Context, CurrentJob, view_of
from jobq.executors.patience import AwakeTimer
from jobq.model import Claimed
from jobq.queue_settings import QueueSettings
from jobq.reading import span_of
from jobq.store.ending import Fence


class Stop(Enum):
    """Why a running job was told to stop."""

    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"
    LOST = "lost"  # the job is no longer this worker's: there is nothing to write
    CANCELLED = "cancelled"  # by hand: no longer this worker's either


TAKEN = frozenset({Stop.LOST, Stop.CANCELLED})


@dataclass(eq=False)
class Held:
    """One claimed job in this process.

    settled: its end is decided (it may still have to be written); outcome: its text, of one that ended well.
    completed: it was written by the handler's own transaction; completing: that may be happening now. started: by the
    monotonic clock, until then when it was claimed; deadline: by the same, None without a timeout. queue: what the code
    says of the job's queue. waits: there is no room for it yet, in the worker (then it has no task) or in its executor.
    patience: it was told to stop, and is left behind when this is over.

    What few jobs need is an attribute of the class until it is set: a worker makes tens of thousands of these a second.
    """

    job: Claimed
    handler: Any
    timeout: timedelta | None
    keep: timedelta | None
    max_attempts: int
    queue: QueueSettings
    started: float
    context: Context | None = field(default=None, init=False)
    task: asyncio.Future[Any] | None = field(default=None, init=False)
    stop: Stop | None = field(default=None, init=False)
    outcome: str | None = field(default=None, init=False)
    settled: bool = field(default=False, init=False)
    completed: bool = field(default=False, init=False)
    has_transaction: bool = field(default=False, init=False)
    completing: bool = field(default=False, init=False)
    waits: bool = field(default=False, init=False)
    patience: AwakeTimer | None = field(default=None, init=False)

    @property
    def view(self) -> CurrentJob:
        """What the handler sees of it."""
        return view_of(self.job, max_attempts=self.max_attempts)

    @property
    def is_last(self) -> bool:
        """One failure more, its worker's death too, and it is dead."""
        return self.job.failures + 1 >= self.max_attempts

    @property
    def fence(self) -> Fence:
        return Fence(self.job.id, self.job.attempt, self.job.worker_id)

    @property
    def deadline(self) -> float | None:
        return None if self.timeout is None or self.waits else self.started + self.timeout.total_seconds()

    def end_patience(self) -> None:
        if self.patience is not None:
            self.patience.cancel()
            self.patience = None


def held_of(job: Claimed, handler: Any, queue: QueueSettings, now: float) -> Held:
    """A claimed job with what counts for it: its own options, else those of its handler, else of its queue."""
    settings = handler.settings
    timeout, keep = (None, None) if job.meta == "{}" else _own_options(job)
    return Held(
        job,
        handler,
        timeout or settings.timeout or queue.timeout,
        keep if keep is not None else settings.keep,
        job.max_attempts or settings.max_attempts,
        queue,
        now,
    )


class HeldJobs:
    """The held jobs by their id. Read by other threads too: `fences`, `overdue` and `of_task` copy first."""

    def __init__(self) -> None:
        self._jobs: dict[int, Held] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def get(self, id_: int) -> Held | None:
        return self._jobs.get(id_)

    def of_task(self, task: asyncio.Task[Any]) -> Held | None:
        """The job that runs in this task; for another thread, too."""
        return next((held for held in list(self._jobs.values()) if held.task is task), None)

    def put(self, held: Held) -> Held | None:
        """A later attempt takes the place of an earlier one, which is returned: the fence refuses its writes anyway."""
        id_ = held.job.id
        earlier = self._jobs.get(id_)
        self._jobs[id_] = held
        return earlier

    def has(self, held: Held) -> bool:
        return self._jobs.get(held.job.id) is held

    def drop(self, held: Held) -> None:
        if self.has(held):
            del self._jobs[held.job.id]

    def drop_all(self, jobs: Iterable[Held]) -> None:
        for held in self.still(jobs):
            del self._jobs[held.job.id]

    def still(self, jobs: Iterable[Held]) -> list[Held]:
        """Those of them that are held."""
        here = self._jobs
        return [held for held in jobs if here.get(held.job.id) is held]

    def ids(self) -> list[int]:
        return list(self._jobs)

    def fences(self, worker_id: int) -> list[Fence]:
        """What is held under this id of the worker."""
        return [held.fence for held in list(self._jobs.values()) if held.job.worker_id == worker_id]

    def overdue(self, now: float) -> list[Held]:
        """Jobs that nothing has settled although they are past their own timeout."""
        jobs = list(self._jobs.values())
        return [held for held in jobs if not held.settled and held.deadline is not None and held.deadline < now]


def _own_options(job: Claimed) -> tuple[timedelta | None, timedelta | None]:
    """What the row itself says of timeout and keep (seconds in `meta`); what makes no sense is not there."""
    try:
        meta = json.loads(job.meta)
        return span_of(meta.get("timeout")), span_of(meta.get("keep"))
    except (ValueError, RecursionError, AttributeError):
        return None, None
