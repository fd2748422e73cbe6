"""What a worker takes that has nothing to do, and what it keeps of what it has done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import sqlalchemy as sa

import jobq
from jobq_cli.bench import machine, probe, statements
from jobq_cli.bench.app import noop
from jobq_cli.bench.bench import Bench, run, wait_until
from jobq_cli.bench.figures import Figure
from jobq_cli.bench.fleet import Fleet, working
from jobq_cli.bench.measures.picking_up import first
from jobq_cli.failures import Failed

_DAY = timedelta(days=1)
CHUNK = 50_000
CHUNK_SECONDS = 300.0


def measure_idle(bench: Bench) -> Iterator[Figure]:
    """A worker that serves forty queues in which nothing is due: of one core, and in transactions of the database."""
    bench.tell(f"an idle worker, {bench.sizes.idle_seconds:.0f} s")
    with bench.database() as engine:
        _schedule(engine, bench.sizes.idle_queues)
        probe.clear(bench.probe)
        with working(engine, bench.probe, concurrency=20) as fleet:
            first(bench, engine, fleet)
            engine.dispose()  # our own connections would count, too
            time.sleep(bench.sizes.settle_seconds)
            before = _used(bench, engine, fleet)
            time.sleep(bench.sizes.idle_seconds)
            after = _used(bench, engine, fleet)
    seconds = after[0] - before[0]
    if machine.IS_KNOWN:
        share = (after[1] - before[1]) / seconds * 100
        yield Figure("idle", "an idle worker with 40 queues, of a core", (share,), "%", 1.0, 0.3, False)
    rate = (after[2] - before[2]) / seconds
    yield Figure("idle", "an idle worker with 40 queues, transactions", (rate,), "1/s", 2.0, None, False)


def measure_memory(bench: Bench) -> Iterator[Figure]:
    """What a worker's process has in memory after many jobs, against few."""
    if not machine.IS_KNOWN:
        return
    sizes = bench.sizes
    with bench.database() as engine:
        probe.clear(bench.probe)
        with working(engine, bench.probe, concurrency=sizes.concurrency) as fleet:
            first(bench, engine, fleet)
            few = many = _memory_after(bench, engine, fleet, sizes.memory_first)
            done = sizes.memory_first
            while done < sizes.memory_last:
                bench.tell(f"memory: {done} jobs")
                more = min(CHUNK, sizes.memory_last - done)
                many = _memory_after(bench, engine, fleet, more)
                done += more
    words = f"after {sizes.memory_last} jobs / after {sizes.memory_first}"
    yield Figure("memory", f"a worker after {sizes.memory_last} jobs", (many / 2**20,), "MiB", more_is_better=False)
    yield Figure("memory", words, (many / few,), "x", 1.05, 1.0, False)


def _schedule(engine: sa.Engine, queues: int) -> None:
    """So that each of the queues is served."""
    later = [noop.options(queue=f"idle-{number}", delay=_DAY).args(-1) for number in range(queues)]
    with engine.begin() as connection:
        jobq.enqueue_many(connection, noop, later)


def _used(bench: Bench, engine: sa.Engine, fleet: Fleet) -> tuple[float, float, int]:
    with bench.scratch.keeper.connect() as connection:
        ended = connection.execute(statements.transactions(), {"name": engine.url.database}).scalar_one()
    return time.monotonic(), machine.cpu_of(fleet.pids) if machine.IS_KNOWN else 0.0, ended


def _memory_after(bench: Bench, engine: sa.Engine, fleet: Fleet, number: int) -> int:
    before = probe.read(bench.probe).number
    run(engine, statements.add_due(), n=number)

    def all_ran() -> bool:
        fleet.check()
        return probe.read(bench.probe).number >= before + number

    if not wait_until(all_ran, seconds=CHUNK_SECONDS, every=0.05):
        raise Failed(f"a worker did not run {number} jobs within {CHUNK_SECONDS:.0f} s")
    time.sleep(0.5)  # the last ends are written
    return machine.memory_of(fleet.pids[0])
