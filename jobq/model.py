"""The values that jobq passes around: frozen, without I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """The states of a job. `pending` is due or scheduled, by its `run_at`."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"


OPEN = frozenset({State.PENDING, State.RUNNING})
ENDED = frozenset({State.DONE, State.DEAD, State.CANCELLED})


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The answer of an enqueue: `created` is False when an open job already held the unique key; `id` is then its id."""

    id: int
    created: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt, as it is kept in the job's row."""

    attempt: int
    at: datetime
    worker: str | None
    error: str  # the class
    message: str
    traceback: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it was read: one row of `all_jobs`. `args` is the decoded JSON object, None when Python cannot parse it."""

    id: int
    queue: str
    kind: str
    state: State
    priority: int
    run_at: datetime
    attempt: int
    failures: int
    max_attempts: int | None
    created_at: datetime
    args: dict[str, Any] | None = None
    unique_key: str | None = None
    worker_id: int | None = None
    attempted_at: datetime | None = None
    finished_at: datetime | None = None
    expires_at: datetime | None = None
    outcome: str | None = None
    callsite: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    errors: tuple[Failure, ...] = ()
