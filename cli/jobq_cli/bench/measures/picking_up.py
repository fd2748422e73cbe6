"""How soon a job starts: in an idle worker, and before others that wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import sqlalchemy as sa
from sqlalchemy.orm import Session

import jobq
from jobq.options import Priority
from jobq_cli.bench import probe
from jobq_cli.bench.app import noop, slow
from jobq_cli.bench.bench import Bench, percentile, wait_until
from jobq_cli.bench.figures import Figure
from jobq_cli.bench.fleet import Fleet, working
from jobq_cli.failures import Failed

BEGIN_SECONDS = 60.0
URGENT_CONCURRENCY = 10


def measure_latency(bench: Bench) -> Iterator[Figure]:
    """From the commit of an enqueue to the handler's start."""
    p50, p99 = [], []
    for round_ in bench.rounds():
        bench.tell(f"latency, round {round_}")
        waits = _waits(bench)
        p50.append(percentile(waits, 0.5) * 1e3)
        p99.append(percentile(waits, 0.99) * 1e3)
    yield Figure("latency", "commit to start, p50", tuple(p50), "ms", 2.0, 1.5, False)
    yield Figure("latency", "commit to start, p99", tuple(p99), "ms", 8.0, 4.0, False)


def measure_urgent(bench: Bench) -> Iterator[Figure]:
    """A job of priority 0 is enqueued while slow ones fill the worker and wait in line: in durations of a slow one."""
    bench.tell("urgent")
    sizes, waits = bench.sizes, []
    with bench.database() as engine:
        probe.clear(bench.probe)
        with working(engine, bench.probe, concurrency=URGENT_CONCURRENCY) as fleet:
            first(bench, engine, fleet)
            for index in range(sizes.urgent):
                _fill(engine, sizes.slow_jobs, sizes.slow_seconds)
                time.sleep(sizes.slow_seconds * (1.5 + index / sizes.urgent))  # at another moment of theirs each time
                waits.append(_urgent(bench, engine, fleet, index) / sizes.slow_seconds)
                _await(fleet, lambda: _open(engine) == 0, sizes.slow_jobs * sizes.slow_seconds + BEGIN_SECONDS)
    words = "longest wait / a slow job"
    yield Figure("urgent", words, (max(waits),), "x", 1.1, 1.05, False)


def first(bench: Bench, engine: sa.Engine, fleet: Fleet) -> None:
    """Let a job run, so that the worker has begun its work; its hit is forgotten."""
    before = probe.read(bench.probe).number
    enqueue(engine, -1)
    _await(fleet, lambda: probe.read(bench.probe).number > before, BEGIN_SECONDS)


def enqueue(engine: sa.Engine, index: int, *, priority: Priority = 1) -> tuple[float, float]:
    """In a session and a transaction of its own; when that began and when it was committed."""
    before = probe.now()
    with Session(engine) as session:
        jobq.enqueue(session, noop.options(priority=priority), index)
        session.commit()
    return before, probe.now()


def _waits(bench: Bench) -> list[float]:
    sizes, own = bench.sizes, probe.Probe(bench.probe)
    with bench.database() as engine:
        probe.clear(bench.probe)
        with working(engine, bench.probe, concurrency=sizes.concurrency) as fleet:
            first(bench, engine, fleet)
            time.sleep(sizes.settle_seconds)
            for index in range(sizes.paced):
                own.sent(index, *enqueue(engine, index))
                time.sleep(sizes.interval)
            _await(fleet, lambda: probe.read(bench.probe).number > sizes.paced, BEGIN_SECONDS)
    return [times.started - times.committed for times in probe.read_times(bench.probe, sizes.paced)]


def _fill(engine: sa.Engine, number: int, seconds: float) -> None:
    with engine.begin() as connection:
        jobq.enqueue_many(connection, slow, [slow.args(seconds)] * number)


def _urgent(bench: Bench, engine: sa.Engine, fleet: Fleet, index: int) -> float:
    before = probe.read(bench.probe).number
    _, committed = enqueue(engine, index, priority=0)
    _await(fleet, lambda: probe.read(bench.probe).number > before, BEGIN_SECONDS)
    return probe.read(bench.probe).last - committed


def _open(engine: sa.Engine) -> int:
    with engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(jobq.tables.jobs)).scalar_one()


def _await(fleet: Fleet, holds: Callable[[], bool], seconds: float) -> None:
    def looks() -> bool:
        fleet.check()
        return holds()

    if not wait_until(looks, seconds=seconds, every=0.005):
        raise Failed(f"a worker did not start what it was given within {seconds:.0f} s")
