"""What `jobq.why` answers: one cause, in words, and what else holds the job up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from jobq.model import State


class Cause(StrEnum):
    """What a job waits for, or how it stands."""

    ATTEMPTS_USED_UP = "attempts used up"
    NO_WORKER = "no worker"
    NO_WORKER_FOR_QUEUE = "no worker for queue"
    NO_HANDLER = "no handler"
    PAUSED = "paused"
    SCHEDULED = "scheduled"
    RETRY = "retry"
    THROTTLED = "throttled"
    LOCKED = "locked"
    HEAD = "head"
    LIMIT = "limit"
    IN_LINE = "in line"
    BUSY = "busy"
    DUE = "due"
    RUNNING = "running"
    LOST = "lost"
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Reason:
    """One cause. `words` go on from "job 42"; `command` is what to type about it, if anything.

    `until`: when it ends by itself, where that is known. `jobs`: the ids of the jobs that it is about.
    """

    cause: Cause
    words: str
    until: datetime | None = None
    command: str | None = None
    jobs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Why:
    """Why a job has not run, or not finished, at one moment of the database's clock.

    Of several reasons the first is the one that binds: needs a person, or lasts longest. `also` are the others, which
    hold the job up as well.
    """

    id: int
    state: State
    at: datetime
    reason: Reason
    also: tuple[Reason, ...] = ()

    @property
    def cause(self) -> Cause:
        return self.reason.cause

    def __str__(self) -> str:
        return f"job {self.id} {self.reason.words}"
