"""What `jobq.stats` and `jobq.workers` say, as values; a queue that is idle is there too, with zeros."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from jobq.model import State

READY_LIMIT = 10_000  # ready, scheduled and dead jobs are counted so far in each queue: exact counts of many are dear


@dataclass(frozen=True, slots=True)
class QueueStats:
    """One queue. `ready`, `scheduled` and `dead` stop at READY_LIMIT: then `more_ready` ... are True.

    `oldest_due` is the age of the oldest job that is due and not running, None when there is none: the number to
    alert on. `running` are counted among the first 10 500 due jobs of each priority, where claims take them. `dead` are
    those that are kept; `done` and `cancelled` are what ended in the last 24 hours. `rate_per_second` is what finished
    (done or dead) in the last minute. Where very many ended just now, `more_done` is True and these three are too low.
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
    more_done: bool = False
    more_dead: bool = False


@dataclass(frozen=True, slots=True)
class KindStats:
    """How long the last attempts of one kind took that ended (done or dead) in the last hour.

    `finished` and `longest` are exact, `p50` and `p95` to within a tenth.
    """

    kind: str
    finished: int
    p50: timedelta
    p95: timedelta
    longest: timedelta


@dataclass(frozen=True, slots=True)
class OutcomeStats:
    """How many jobs of a kind ended so in the last 24 hours; `outcome` is ok, fail, skip or err."""

    queue: str
    kind: str
    state: State
    outcome: str
    finished: int


@dataclass(frozen=True, slots=True)
class Stats:
    """The whole installation at one moment of the database's clock.

    `states` counts the jobs there are, of done and cancelled ones those of the last 24 hours; `pending` is a lower
    bound where `more_pending` is True. `unknown_kinds`: how many jobs wait for a kind that no live worker has a handler
    for, as far as ready and scheduled jobs are counted; they wait until one does. `left_behind`: handlers that live
    workers could not stop and that still run there.

    What ended before `summed_until` comes from sums by the minute, which the leader among the workers keeps; what ended
    since is counted now. None: nothing is summed yet.
    """

    at: datetime
    queues: tuple[QueueStats, ...] = ()
    kinds: tuple[KindStats, ...] = ()
    outcomes: tuple[OutcomeStats, ...] = ()
    states: Mapping[State, int] = field(default_factory=dict)
    more_pending: bool = False
    oldest_due: timedelta | None = None
    dead_last_hour: int = 0
    live_workers: int = 0
    left_behind: int = 0
    unknown_kinds: Mapping[str, int] = field(default_factory=dict)
    summed_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker's row. One whose lease ran out is not `alive`: its jobs are about to be given to others.

    `is_leader`: it is the one that cleans and sums up. `left_behind`: handlers that it could not stop and that still
    run there, by its last beat. `running`: what it holds, with those that it has claimed ahead of free slots.
    """

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
    is_leader: bool
    running: int
    read_at: datetime
    left_behind: int = 0


def worker_of(row: Mapping[Any, Any]) -> WorkerRow:
    """A worker from its row."""
    values = {name: row[name] for name in WorkerRow.__dataclass_fields__}
    queues = None if row["queues"] is None else tuple(row["queues"])
    return WorkerRow(**{**values, "queues": queues, "kinds": tuple(row["kinds"] or ())})
