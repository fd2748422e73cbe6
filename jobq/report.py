"""What `jobq.stats` says, as values; a queue that is idle is there too, with zeros."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from jobq.model import State

READY_LIMIT = 10_000  # what is ready or scheduled is counted so far in each queue: exact counts of a backlog are dear


@dataclass(frozen=True, slots=True)
class QueueStats:
    """One queue. `ready` and `scheduled` stop at READY_LIMIT: then `more_ready` and `more_scheduled` are True.

    `oldest_due` is the age of the oldest job that is due and not running, None when there is none: the number to
    alert on. `rate_per_second` is what finished (done or dead) in the last minute.
    """

    queue: str
    ready: int = 0
    scheduled: int = 0
    running: int = 0
    done: int = 0
    dead: int = 0
    cancelled: int = 0
    oldest_due: timedelta | None = None
    rate_per_second: float = 0.0
    paused_until: datetime | None = None
    pause_reason: str | None = None
    more_ready: bool = False
    more_scheduled: bool = False


@dataclass(frozen=True, slots=True)
class KindStats:
    """How long the last attempts of one kind took that ended (done or dead) in the last hour."""

    kind: str
    finished: int
    p50: timedelta
    p95: timedelta
    longest: timedelta


@dataclass(frozen=True, slots=True)
class Stats:
    """The whole installation at one moment of the database's clock.

    `states` counts the jobs there are; `pending` is a lower bound where `more_pending` is True. `unknown_kinds`: how
    many jobs wait for a kind that no live worker has a handler for; they wait until one does.
    """

    at: datetime
    queues: tuple[QueueStats, ...] = ()
    kinds: tuple[KindStats, ...] = ()
    states: Mapping[State, int] = field(default_factory=dict)
    more_pending: bool = False
    oldest_due: timedelta | None = None
    dead_last_hour: int = 0
    live_workers: int = 0
    unknown_kinds: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker's row. One whose lease ran out is not `alive`: its jobs are about to be given to others."""

    id: int
    name: str
    hostname: str | None
    pid: int | None
    version: str | None
    queues: tuple[str, ...] | None  # None: every queue that has work of a kind it knows
    kinds: tuple[str, ...]
    concurrency: int | None
    started_at: datetime
    lease_until: datetime
    alive: bool
    running: int
    read_at: datetime


@dataclass(frozen=True, slots=True)
class Counts:
    """The rows that the statements of stats gave."""

    at: datetime
    live_workers: int
    waiting: Iterable[Any]
    held: Iterable[Any]
    ended: Iterable[Any]
    known: Iterable[Any]
    durations: Iterable[Any]


def stats_of(counts: Counts) -> Stats:
    """Every count once, put together by queue."""
    by_queue: dict[str, dict[str, Any]] = {}
    _add_known(by_queue, counts.known)
    _add_waiting(by_queue, counts.waiting, counts.at)
    unknown = _add_held(by_queue, counts.held)
    dead_last_hour = _add_ended(by_queue, counts.ended)
    queues = tuple(QueueStats(queue=name, **by_queue[name]) for name in sorted(by_queue))
    return Stats(
        at=counts.at,
        queues=queues,
        kinds=tuple(_kind(row) for row in counts.durations),
        states=_states(queues),
        more_pending=any(queue.more_ready or queue.more_scheduled for queue in queues),
        oldest_due=max((queue.oldest_due for queue in queues if queue.oldest_due is not None), default=None),
        dead_last_hour=dead_last_hour,
        live_workers=counts.live_workers,
        unknown_kinds=unknown,
    )


def _add_known(by_queue: dict[str, dict[str, Any]], rows: Iterable[Any]) -> None:
    for row in rows:
        numbers = by_queue.setdefault(row.queue, {})
        if row.paused_until is not None:
            numbers.update(paused_until=row.paused_until, pause_reason=row.reason)


def _add_waiting(by_queue: dict[str, dict[str, Any]], rows: Iterable[Any], at: datetime) -> None:
    for row in rows:
        by_queue.setdefault(row.queue, {}).update(
            ready=min(int(row.ready), READY_LIMIT),
            more_ready=row.ready > READY_LIMIT,
            scheduled=min(int(row.scheduled), READY_LIMIT),
            more_scheduled=row.scheduled > READY_LIMIT,
            oldest_due=None if row.oldest is None else max(at - row.oldest, timedelta(0)),
        )


def _add_held(by_queue: dict[str, dict[str, Any]], rows: Iterable[Any]) -> dict[str, int]:
    unknown: dict[str, int] = {}
    for row in rows:
        numbers = by_queue.setdefault(row.queue, {})
        numbers["running"] = numbers.get("running", 0) + row.running
        if row.unknown:
            unknown[row.kind] = unknown.get(row.kind, 0) + row.unknown
    return dict(sorted(unknown.items()))


def _add_ended(by_queue: dict[str, dict[str, Any]], rows: Iterable[Any]) -> int:
    dead_last_hour = 0
    for row in rows:
        numbers = by_queue.setdefault(row.queue, {})
        numbers[row.state] = row.kept
        if row.state != State.CANCELLED:
            numbers["rate_per_second"] = numbers.get("rate_per_second", 0.0) + row.last_minute / 60
        if row.state == State.DEAD:
            dead_last_hour += row.last_hour
    return dead_last_hour


def _states(queues: Iterable[QueueStats]) -> dict[State, int]:
    totals = dict.fromkeys(State, 0)
    for queue in queues:
        totals[State.PENDING] += queue.ready + queue.scheduled
        for state in (State.RUNNING, State.DONE, State.DEAD, State.CANCELLED):
            totals[state] += getattr(queue, state)
    return totals


def _kind(row: Any) -> KindStats:
    p50, p95, longest = (timedelta(seconds=max(float(span), 0)) for span in (row.p50, row.p95, row.longest))
    return KindStats(row.kind, row.finished, p50, p95, longest)


def worker_of(row: Mapping[Any, Any]) -> WorkerRow:
    """A worker from its row."""
    values = {name: row[name] for name in WorkerRow.__dataclass_fields__}
    queues = None if row["queues"] is None else tuple(row["queues"])
    return WorkerRow(**{**values, "queues": queues, "kinds": tuple(row["kinds"] or ())})
