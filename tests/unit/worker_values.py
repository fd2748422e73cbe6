"""Values for the tests of the worker's parts: a clock that stands still, and jobs as a claim gives them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from jobq.backoff import Exponential
from jobq.model import Claimed
from jobq.options import Settings
from jobq.queue_settings import QueueSettings
from jobq.worker.held import Held

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WORKER = 77


class Clock:
    """Seconds, as a monotonic clock gives them; moves when it is told to."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class HandlerOf:
    """What a held job asks of its handler: its settings."""

    def __init__(self, **settings: Any) -> None:
        self.settings = Settings(**{"queue": "email", "retry": Exponential(), **settings})


def claimed(id_: int = 1, **values: Any) -> Claimed:
    """A job as it was claimed."""
    row: dict[str, Any] = {
        "id": id_, "attempt": 1, "queue": "email", "kind": "email.send", "args": "{}", "priority": 1, "run_at": NOON,
        "failures": 0, "max_attempts": None, "meta": "{}", "created_at": NOON, "worker_id": WORKER,
        "place": "(0,1)", "claimed_at": NOON + timedelta(seconds=1.5),
    }  # fmt: skip
    return Claimed(**{**row, **values})


def held_of(job: Claimed, *, timeout: timedelta | None = None, started: float = 1_000.0) -> Held:
    """The job as a worker holds it."""
    return Held(job, HandlerOf(), timeout=timeout, keep=None, max_attempts=5, queue=QueueSettings(), started=started)
