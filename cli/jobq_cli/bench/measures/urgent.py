"""How soon a job starts that goes before those which a worker has claimed ahead."""

from __future__ import annotations

import time
from collections.abc import Iterator

import sqlalchemy as sa

import jobq
from jobq_cli.bench import probe, statements
from jobq_cli.bench.app import slow
from jobq_cli.bench.bench import Bench
from jobq_cli.bench.figures import Figure
from jobq_cli.bench.fleet import Fleet, working
from jobq_cli.bench.measures.picking_up import await_in, enqueue, first

CONCURRENCY = 10
QUICK_JOBS = 1_000
QUICK_SECONDS = 0.004  # each: ten slots hold some 45 of these ahead, fewer than there will be slow ones
MOMENTS = 1.5  # durations of a slow job, in which the urgent ones come; what waits for 0.5 s is given back
DRAIN_SECONDS = 60.0


def measure(bench: Bench) -> Iterator[Figure]:
    """A job of priority 0 is enqueued while slow ones run, fill what the worker has claimed ahead and wait in line.

    The worker claims slow ones ahead since jobs were quick until they came. That it has, is held to: without, the wait
    would say nothing. In durations of a slow one.
    """
    bench.tell("urgent")
    sizes = bench.sizes
    with bench.database() as engine:
        probe.clear(bench.probe)
        with working(engine, bench.probe, concurrency=CONCURRENCY) as fleet:
            first(bench, engine, fleet)
            found = [_behind_slow_ones(bench, engine, fleet, index) for index in range(sizes.urgent)]
    ahead, waits = zip(*found, strict=True)
    yield Figure("urgent", "slow jobs claimed ahead of it", (float(min(ahead)),), "jobs", 1.0)
    yield Figure("urgent", "longest wait / a slow job", (max(waits) / sizes.slow_seconds,), "x", 1.1, 1.05, False)


def _behind_slow_ones(bench: Bench, engine: sa.Engine, fleet: Fleet, index: int) -> tuple[int, float]:
    """How many the worker had claimed beyond its slots right before the urgent job came, and how long that waited."""
    sizes = bench.sizes
    _add(engine, QUICK_JOBS, QUICK_SECONDS)
    await_in(fleet, lambda: _count(engine, statements.open_jobs()) == 0, DRAIN_SECONDS)
    _add(engine, sizes.slow_jobs, sizes.slow_seconds)
    await_in(fleet, lambda: _count(engine, statements.claimed_jobs()) > 0)
    time.sleep(sizes.slow_seconds * MOMENTS * index / sizes.urgent)  # at another moment of theirs each time
    ahead = _count(engine, statements.claimed_jobs()) - CONCURRENCY
    wait = _urgent(bench, engine, fleet, index)
    seconds = sizes.slow_jobs * sizes.slow_seconds + DRAIN_SECONDS
    await_in(fleet, lambda: _count(engine, statements.open_jobs()) == 0, seconds)
    return max(0, ahead), wait


def _urgent(bench: Bench, engine: sa.Engine, fleet: Fleet, index: int) -> float:
    before = probe.read(bench.probe).number
    _, committed = enqueue(engine, index, priority=0)
    await_in(fleet, lambda: probe.read(bench.probe).number > before)
    return probe.read(bench.probe).last - committed


def _add(engine: sa.Engine, number: int, seconds: float) -> None:
    with engine.begin() as connection:
        jobq.enqueue_many(connection, slow, [slow.args(seconds)] * number)


def _count(engine: sa.Engine, statement: sa.Executable) -> int:
    with engine.connect() as connection:
        return int(connection.execute(statement).scalar_one())
