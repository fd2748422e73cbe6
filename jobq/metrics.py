"""Metrics for Prometheus: `REGISTRY.register(Collector(engine, worker))`. Needs the extra: `jobq[prometheus]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import sqlalchemy as sa
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector as BaseCollector
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from jobq.admin import stats
from jobq.end_counts import EndCounts
from jobq.errors import BindError, WorkerError
from jobq.readings import Readings
from jobq.report import Stats
from jobq.statements.patience import answer_within

if TYPE_CHECKING:
    from jobq.worker import Worker, WorkerStats

Source: TypeAlias = sa.Engine | sessionmaker[Session] | scoped_session[Session]

STATES = ("ready", "scheduled", "running", "dead")
WORKER_COUNTERS = {
    "claims": "Claims that came through",
    "claimed": "Jobs claimed",
    "given_back": "Jobs given back unfinished when this worker left",
    "lost": "Attempts stopped since another hand had the job",
    "leases_lost": "Leases that ran out while the worker lived",
    "rescued": "Jobs taken back from workers that died",
    "loop_blocks": "How often a handler blocked the event loop for a second or more",
}


class Collector(BaseCollector):
    """Gauges of the whole installation, read from the database, and the counters of one worker of this process.

    `engine` (or a sessionmaker): where to read; at most once in `max_age`, in a thread of its own, and a scrape waits
    no longer than `patience` for it. A scrape within an event loop does not wait at all: it gets what is known. While
    the database cannot be read `jobq_up` is 0, its gauges are missing, and the rest of the scrape is as ever.

    `worker`: its ends of jobs are counted from now on, by queue and kind.
    """

    def __init__(
        self,
        engine: Source,
        worker: Worker | None = None,
        *,
        max_age: timedelta = timedelta(seconds=5),
        patience: timedelta = timedelta(seconds=3),
    ) -> None:
        self._readings = Readings(_reader(engine, patience), max_age=max_age, patience=patience)
        self._worker = worker
        self._ends = EndCounts()
        if worker is not None:
            worker.on_ends(self._ends.count)

    def describe(self) -> Iterator[Metric]:
        """None: what there is depends on the database, which registering must not ask."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All families, for one scrape."""
        found = self._readings.latest()
        if self._readings.is_known:
            yield GaugeMetricFamily("jobq_up", "Whether the database could be read", value=found is not None)
        if found is not None:
            yield from _queues(found)
            yield GaugeMetricFamily("jobq_workers", "Workers that are alive", value=found.live_workers)
            unknown = sum(found.unknown_kinds.values())
            yield GaugeMetricFamily("jobq_unknown_kind_jobs", "Jobs that wait for a kind no worker has", value=unknown)
        if self._worker is not None:
            yield from self._ends.collect()
            yield from _worker(self._worker)


def _queues(found: Stats) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("jobq_queue_jobs", "Jobs by state, each counted up to 10000", labels=("queue", "state"))
    oldest = GaugeMetricFamily(
        "jobq_queue_oldest_age_seconds", "How long the oldest due job waits: the number to alert on", labels=("queue",)
    )
    paused = GaugeMetricFamily("jobq_queue_paused", "Whether the queue stands still", labels=("queue",))
    for queue in found.queues:
        for state in STATES:
            jobs.add_metric((queue.queue, state), getattr(queue, state))
        oldest.add_metric((queue.queue,), (queue.oldest_due or timedelta(0)).total_seconds())
        paused.add_metric((queue.queue,), queue.paused_until is not None)
    yield from (jobs, oldest, paused)


def _worker(worker: Worker) -> Iterator[Metric]:
    yield GaugeMetricFamily("jobq_ready", "Whether this worker takes jobs", value=worker.is_ready)
    try:
        found: WorkerStats = worker.stats()
    except WorkerError:  # it has not begun
        return
    yield GaugeMetricFamily("jobq_running", "Jobs that this worker runs", value=found.running)
    yield GaugeMetricFamily("jobq_left_behind", "Handlers that could not be stopped", value=found.left_behind)
    longest = found.longest_block.total_seconds()
    yield GaugeMetricFamily("jobq_longest_block_seconds", "The longest that a handler blocked the loop", value=longest)
    yield GaugeMetricFamily("jobq_leader", "Whether this worker cleans and sums up", value=found.is_leader)
    yield CounterMetricFamily("jobq_fenced_writes", "Writes refused since the lease was lost", value=found.refused)
    for name, help_ in WORKER_COUNTERS.items():
        yield CounterMetricFamily(f"jobq_{name}", help_, value=getattr(found, name))


def _reader(source: Source, patience: timedelta) -> Callable[[], Stats]:
    """Reads in a transaction of its own, which the server ends when it takes too long."""
    opened = _opener(source)

    def read() -> Stats:
        with opened() as bind:
            bind.execute(answer_within(), {"limit": f"{patience.total_seconds() * 1000:.0f}"})
            return stats(bind)

    return read


def _opener(source: Source) -> Callable[[], AbstractContextManager[Any]]:
    if isinstance(source, sa.Engine):
        return source.connect
    if isinstance(source, scoped_session):
        return source.session_factory
    if isinstance(source, sessionmaker):
        return source
    raise BindError(
        f"Collector takes an Engine or a sessionmaker, not {type(source).__name__}: the sync one of the two"
    )
