"""What bears on one job, read by one statement, so that it was all true at the same moment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from jobq.checks import LATEST
from jobq.model import Failure, State
from jobq.reading import failures_of

MOST_BEFORE = 10_000  # jobs that come before are counted so far


@dataclass(frozen=True, slots=True)
class JobFacts:
    """`max_attempts`: its own, else what workers have published of its kind. `locked_by`: another session, in words."""

    id: int
    kind: str
    queue: str
    priority: int
    state: State
    run_at: datetime
    attempt: int = 0
    failures: int = 0
    own_max_attempts: int | None = None
    max_attempts: int | None = None
    worker_id: int | None = None
    attempted_at: datetime | None = None
    finished_at: datetime | None = None
    outcome: str | None = None
    failure: Failure | None = None
    locked_by: str | None = None

    @property
    def has_just_failed(self) -> bool:
        """Its last attempt ended with the error that is kept last; else it was put off or given back since."""
        return self.failure is not None and self.failure.attempt == self.attempt


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """A worker's row, and how many jobs carry its id."""

    id: int
    name: str
    queues: frozenset[str] | None
    kinds: frozenset[str]
    concurrency: int | None
    running: int
    lease: timedelta
    lease_until: datetime

    @property
    def last_beat(self) -> datetime:
        return self.lease_until - self.lease

    def serves(self, queue: str) -> bool:
        return self.queues is None or queue in self.queues

    @property
    def is_full(self) -> bool:
        return self.concurrency is not None and self.running >= self.concurrency

    @property
    def ahead(self) -> int:
        """How many it holds beyond those that it runs at a time."""
        return 0 if self.concurrency is None else max(0, self.running - self.concurrency)


@dataclass(frozen=True, slots=True)
class SlotFacts:
    """The right to run one job of a limited queue. `ready_at`: only if that is to come.

    `has_ended`: the job that has it was cancelled, say, or taken away, and its handler still runs.
    """

    n: int
    worker_id: int | None = None
    job_id: int | None = None
    ready_at: datetime | None = None
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """`limit` None: as many jobs as there is room for. `paused_until`: only if that is to come."""

    fifo: bool = False
    limit: int | None = None
    paused_until: datetime | None = None
    pause_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """`head`: of a FIFO queue the job that is to run first; it may be the job itself.

    `before`: how many due jobs are to run before it, up to MOST_BEFORE + 1.
    """

    now: datetime
    job: JobFacts
    queue: QueueFacts = QueueFacts()
    head: JobFacts | None = None
    slots: tuple[SlotFacts, ...] = ()
    workers: tuple[WorkerFacts, ...] = ()
    before: int = 0

    @property
    def live(self) -> list[WorkerFacts]:
        return [worker for worker in self.workers if worker.lease_until > self.now]

    def for_head(self) -> Facts:
        """The same of the head, which is next itself."""
        assert self.head is not None
        return replace(self, job=self.head, before=0)

    def worker(self, worker_id: int | None) -> WorkerFacts | None:
        return next((worker for worker in self.workers if worker.id == worker_id), None)


def facts_of(row: Mapping[Any, Any], id: int) -> Facts | None:  # noqa: A002
    """The facts from their row, whose parts are JSON; None when there is no such job."""
    found = {job.id: job for job in map(_job, _list(row["found"]))}
    if id not in found:
        return None
    return Facts(
        now=row["now"],
        job=found[id],
        queue=next(map(_queue, _list(row["queue"])), QueueFacts()),
        head=found.get(row["head_id"]),
        slots=tuple(map(_slot, _list(row["slots"]))),
        workers=tuple(map(_worker, _list(row["workers"]))),
        before=row["before"],
    )


def _job(values: dict[str, Any]) -> JobFacts:
    times = {name: _time(values[name]) for name in ("run_at", "attempted_at", "finished_at")}
    failures = failures_of(values.pop("last_error"), otherwise_at=times["run_at"] or LATEST)
    last = failures[-1] if failures else None
    return JobFacts(**{**values, **times, "state": State(values["state"]), "failure": last})


def _worker(values: dict[str, Any]) -> WorkerFacts:
    queues = None if values["queues"] is None else frozenset(values["queues"])
    lease = timedelta(seconds=values.pop("lease_seconds"))
    until = _time(values["lease_until"]) or LATEST
    return WorkerFacts(
        **{**values, "queues": queues, "kinds": frozenset(values["kinds"] or ()), "lease_until": until}, lease=lease
    )


def _slot(values: dict[str, Any]) -> SlotFacts:
    return SlotFacts(**{**values, "ready_at": _time(values["ready_at"])})


def _queue(values: dict[str, Any]) -> QueueFacts:
    return QueueFacts(**{**values, "paused_until": _time(values["paused_until"])})


def _list(text: str | None) -> list[dict[str, Any]]:
    return json.loads(text) if text else []


def _time(text: str | None) -> datetime | None:
    """A time as PostgreSQL writes it into JSON."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:  # 'infinity', or after the year 9999
        return LATEST
