"""How soon a job starts in an idle worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import sqlalchemy as sa
from sqlalchemy.orm import Session

import jobq
from jobq.options import Priority
from jobq_cli.bench import probe
from jobq_cli.bench.app import noop
from jobq_cli.bench.bench import Bench, percentile, wait_until
from jobq_cli.bench.figures import Figure
from jobq_cli.bench.fleet import Fleet, working
from jobq_cli.failures import Failed

BEGIN_SECONDS = 60.0


def measure(bench: Bench) -> Iterator[Figure]:
    """From the commit of an enqueue to the handler's start."""
    p50, p99 = [], []
    for round_ in bench.rounds():
        bench.tell(f"latency, round {round_}")
        waits = _waits(bench)
        p50.append(percentile(waits, 0.5) * 1e3)
        p99.append(percentile(waits, 0.99) * 1e3)
    yield Figure("latency", "commit to start, p50", tuple(p50), "ms", 2.0, 1.5, False)
    yield Figure("latency", "commit to start, p99", tuple(p99), "ms", 8.0, 4.0, False)


def first(bench: Bench, engine: sa.Engine, fleet: Fleet) -> None:
    """Let a job run, so that the worker has begun its work; its hit is forgotten."""
    before = probe.read(bench.probe).number
    enqueue(engine, -1)
    await_in(fleet, lambda: probe.read(bench.probe).number > before)


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
            await_in(fleet, lambda: probe.read(bench.probe).number > sizes.paced)
    return [times.started - times.committed for times in probe.read_times(bench.probe, sizes.paced)]


def await_in(fleet: Fleet, holds: Callable[[], bool], seconds: float = BEGIN_SECONDS) -> None:
    """Until it holds. Raises: Failed."""

    def looks() -> bool:
        fleet.check()
        return holds()

    if not wait_until(looks, seconds=seconds, every=0.005):
        raise Failed(f"a worker did not start what it was given within {seconds:.0f} s")
