"""What a worker takes that has nothing to do, and what it keeps of what it has done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

import jobq
from jobq_cli.bench import machine, probe, statements
from jobq_cli.bench.app import noop
from jobq_cli.bench.bench import Bench, run, wait_until
from jobq_cli.bench.figures import Figure
from jobq_cli.bench.fleet import Fleet, working
from jobq_cli.bench.measures.picking_up import first
from jobq_cli.bench.server_log import ServerLog, log_of
from jobq_cli.failures import Failed

_DAY = timedelta(days=1)
CHUNK = 50_000
CHUNK_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Use:
    """What was used until a moment: processor time in seconds, transactions, and statements where they are counted."""

    at: float
    cpu: float
    transactions: int
    statements: int | None


def measure_idle(bench: Bench) -> Iterator[Figure]:
    """A worker that serves forty queues in which nothing is due, and that is the leader: of one core, and statements.

    Where the server's log cannot be read it is transactions, which hold one statement or more: no measure of these.
    """
    bench.tell(f"an idle worker, {bench.sizes.idle_seconds:.0f} s")
    with bench.database() as engine:
        _schedule(engine, bench.sizes.idle_queues)
        log = log_of(bench.scratch, engine)
        probe.clear(bench.probe)
        with working(engine, bench.probe, concurrency=20) as fleet:
            first(bench, engine, fleet)
            engine.dispose()  # our own connections would count, too
            time.sleep(bench.sizes.settle_seconds)
            log = log and log.from_now()
            before = _used(bench, engine, fleet, log)
            time.sleep(bench.sizes.idle_seconds)
            after = _used(bench, engine, fleet, log)
    yield from _per_second(before, after)


def _per_second(before: Use, after: Use) -> Iterator[Figure]:
    seconds = after.at - before.at
    if machine.IS_KNOWN:
        share = (after.cpu - before.cpu) / seconds * 100
        yield Figure("idle", "of a core, 40 queues", (share,), "%", 1.0, 0.3, False)
    if before.statements is not None and after.statements is not None:
        rate = (after.statements - before.statements) / seconds
        yield Figure("idle", "statements, 40 queues", (rate,), "1/s", 2.0, None, False)
    else:
        rate = (after.transactions - before.transactions) / seconds
        yield Figure("idle", "transactions, 40 queues", (rate,), "1/s", more_is_better=False)


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
    words = f"after {sizes.memory_last} / {sizes.memory_first}"
    yield Figure("memory", f"after {sizes.memory_last} jobs", (many / 2**20,), "MiB", more_is_better=False)
    yield Figure("memory", words, (many / few,), "x", 1.05, 1.0, False)


def _schedule(engine: sa.Engine, queues: int) -> None:
    """So that each of the queues is served."""
    later = [noop.options(queue=f"idle-{number}", delay=_DAY).args(-1) for number in range(queues)]
    with engine.begin() as connection:
        jobq.enqueue_many(connection, noop, later)


def _used(bench: Bench, engine: sa.Engine, fleet: Fleet, log: ServerLog | None) -> Use:
    with bench.scratch.keeper.connect() as connection:
        ended = connection.execute(statements.transactions(), {"name": engine.url.database}).scalar_one()
    cpu = machine.cpu_of(fleet.pids) if machine.IS_KNOWN else 0.0
    return Use(time.monotonic(), cpu, ended, None if log is None else log.statements())


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
