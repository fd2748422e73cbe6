"""The values that jobq passes around: frozen, without I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple


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
    """An enqueue's answer. `created` is False when an open job held the unique key already; `id` is then its id.

    `changed`: that job waited, and was replaced or rescheduled as `on_conflict` says. Where both are False it was left
    as it is: that is "ignore", or it runs already.
    """

    id: int
    created: bool
    changed: bool = False


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
class Progress:
    """How far a handler has said to be, 0 to 1, and in which attempt that was."""

    fraction: float
    message: str = ""
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it was read: one row of `all_jobs`. `args` is None when Python cannot parse what is stored.

    `progress` and `checkpoint`: what a handler has said last in `current().progress(...)` and `.checkpoint(...)`.
    `result`: what it gave with its outcome, `jobq.Ok("sent", result={...})`.
    """

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
    args: dict[str, Any] | None = field(default=None, repr=False)  # what repr shows, logs have
    unique_key: str | None = None
    worker_id: int | None = None
    attempted_at: datetime | None = None
    finished_at: datetime | None = None
    expires_at: datetime | None = None
    outcome: str | None = None
    callsite: str | None = None
    meta: dict[str, Any] = field(default_factory=dict, repr=False)
    errors: tuple[Failure, ...] = ()
    progress: Progress | None = None
    checkpoint: dict[str, Any] | None = field(default=None, repr=False)
    result: Any = field(default=None, repr=False)


class Claimed(NamedTuple):
    """A job as a worker has claimed it. `args` and `meta` are JSON text: they are decoded inside the attempt.

    A tuple, since a worker makes tens of thousands of them a second: a frozen dataclass takes five times as long.

    `place`: where its row was then. `claimed_at`: by the database's clock. `slot`: of a limited queue the number of the
    slot that the job has; `in_order`: that queue is FIFO.
    """

    id: int
    attempt: int
    queue: str
    kind: str
    args: str
    priority: int
    run_at: datetime
    failures: int
    max_attempts: int | None
    meta: str
    created_at: datetime
    place: str
    worker_id: int
    claimed_at: datetime
    slot: int | None = None
    in_order: bool = False

    def __repr__(self) -> str:
        return f"<Claimed {self.kind} {self.id} attempt {self.attempt}>"  # no args: they may be secret

    @property
    def waited(self) -> timedelta:
        """From the later of run_at and created_at to the claim."""
        return self.claimed_at - max(self.run_at, self.created_at)

    @property
    def lane(self) -> tuple[str, int]:
        return self.queue, self.priority


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a lane: what a notification tells, and where a job was given back to."""

    queue: str
    priority: int
    run_at: datetime
