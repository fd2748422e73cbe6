"""Draining a backlog by real workers. The clock runs from the first handler's start to the last durable completion."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

import jobq
from jobq.handlers import Args
from jobq_cli.bench import machine, probe, statements
from jobq_cli.bench.app import noop
from jobq_cli.bench.bench import Bench, run, vacuum, wait_until
from jobq_cli.bench.fleet import APP, Fleet, working
from jobq_cli.failures import Failed

MOST_SECONDS = 600.0
START_SECONDS = 1.0  # for what a worker does once: it looks everywhere for lost jobs, and the leader sums up


@dataclass(frozen=True, slots=True)
class Drain:
    """How it went. CPU: seconds for 10 000 jobs, None where it cannot be read."""

    rate: float
    worker_cpu: float | None
    server_cpu: float | None


def drain(bench: Bench, engine: sa.Engine, rows: Sequence[Args[...]], *, number: int = 1, app: str = APP) -> Drain:
    """Enqueue the rows, then let so many workers drain them, which begin together. Raises: Failed."""
    with engine.begin() as connection:
        ids = [enqueued.id for enqueued in jobq.enqueue_many(connection, rows[0].source, rows)]
        queues = list(connection.execute(statements.queues_of()).scalars())
        for queue in queues:
            jobq.pause(connection, queue)
    vacuum(engine)
    probe.clear(bench.probe)
    with working(engine, bench.probe, number=number, concurrency=bench.sizes.concurrency, app=app) as fleet:
        _begin(engine, fleet, queues)
        found = _watched(bench, engine, fleet, (min(ids), max(ids)), len(rows))
        bench.log_lines += fleet.lines
    return found


def fill(engine: sa.Engine, probe_path: str, *, finished: int, future: int) -> None:
    """Jobs that are said to have ended, summed up as a fleet at work does it minute by minute; and scheduled ones."""
    run(engine, statements.add_finished(), n=finished)
    run(engine, statements.add_future(), n=future)
    _sum_up(engine, probe_path)


def _sum_up(engine: sa.Engine, probe_path: str) -> None:
    with (
        working(engine, probe_path, concurrency=1) as fleet,
        engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
    ):
        _wait(fleet, lambda: bool(connection.execute(statements.is_summed_up()).scalar_one()))


def numbered(count: int) -> list[Args[...]]:
    """So many equal jobs."""
    return [noop.args(-1)] * count


def _begin(engine: sa.Engine, fleet: Fleet, queues: Sequence[str]) -> None:
    """Once all of them are there: one process may be half a second later than another."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        _wait(fleet, lambda: connection.execute(statements.workers_up()).scalar_one() == len(fleet.processes))
    time.sleep(START_SECONDS)
    with engine.begin() as connection:
        for queue in queues:
            jobq.resume(connection, queue)


def _watched(bench: Bench, engine: sa.Engine, fleet: Fleet, ids: tuple[int, int], jobs: int) -> Drain:
    _wait(fleet, lambda: probe.read(bench.probe).number > 0, every=0.002)
    before, counted = _used(bench, fleet), probe.read(bench.probe).number
    _wait(fleet, lambda: probe.read(bench.probe).number >= jobs)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        values = {"first": ids[0], "last": ids[1]}
        _wait(fleet, lambda: connection.execute(statements.open_among(), values).scalar_one() == 0)
    ended, after = time.monotonic(), _used(bench, fleet)
    rate = jobs / (ended - probe.read(bench.probe).first)
    costs = [
        None if then is None or now is None else (then - now) * 10_000 / max(1, jobs - counted)
        for now, then in zip(before, after, strict=True)
    ]
    return Drain(rate, costs[0], costs[1])


def _used(bench: Bench, fleet: Fleet) -> tuple[float | None, float | None]:
    if not machine.IS_KNOWN:
        return None, None
    return machine.cpu_of(fleet.pids), None if bench.server is None else machine.cpu_of([bench.server])


def _wait(fleet: Fleet, holds: Callable[[], bool], *, every: float = 0.01) -> None:
    def looks() -> bool:
        fleet.check()
        return holds()

    if not wait_until(looks, seconds=MOST_SECONDS, every=every):
        raise Failed(f"the workers did not drain what they were given within {MOST_SECONDS:.0f} s")
