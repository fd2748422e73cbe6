"""What is measured of a queue. A drain's clock runs from the first handler's start to the last durable completion."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import psycopg

from comparing.steps import Queue, StepFailed
from jobq_cli.bench import machine, probe

DRAIN_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of each."""

    drain: int = 20_000
    backlog: int = 200_000
    one: int = 2_000
    many: int = 50_000
    paced: int = 200
    interval: float = 0.05
    settle: float = 3.0
    finished: int = 1_000_000
    future: int = 500_000


Result: TypeAlias = dict[str, Any]


class Bench:
    """The database that the queues take turns in, and its server."""

    def __init__(self, dsn: str, sizes: Sizes) -> None:
        self.connection = psycopg.connect(dsn, autocommit=True)
        self.sizes = sizes
        (self.backend,) = self.connection.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        self.server = machine.parent_of(self.backend) if machine.IS_KNOWN else 0

    def measure(self, queue: Queue, name: str, info: dict[str, Any]) -> Result:
        """One measure of one queue, from an empty schema on. Raises: StepFailed."""
        queue.call("setup")
        return MEASURES[name](self, queue, info)

    def done(self, info: dict[str, Any]) -> int:
        row = self.connection.execute(info["done_sql"]).fetchone()
        return int(row[0]) if row else 0


def enqueue_one(bench: Bench, queue: Queue, _info: dict[str, Any]) -> Result:
    number = bench.sizes.one
    return _rate(number, queue.call("enqueue_one", jobs=number)["seconds"])


def enqueue_many(bench: Bench, queue: Queue, _info: dict[str, Any]) -> Result:
    number = bench.sizes.many
    return _rate(number, queue.call("enqueue_many", jobs=number)["seconds"])


def drain_by(processes: int) -> Callable[[Bench, Queue, dict[str, Any]], Result]:
    """A backlog, drained by so many processes."""

    def drain_some(bench: Bench, queue: Queue, info: dict[str, Any]) -> Result:
        queue.call("enqueue_many", jobs=bench.sizes.drain)
        return _drain(bench, queue, info, bench.sizes.drain, processes)

    return drain_some


def drain_on_one_core(bench: Bench, queue: Queue, info: dict[str, Any]) -> Result:
    """The server and the worker share a core meanwhile."""
    queue.call("enqueue_many", jobs=bench.sizes.drain)
    with machine.on_one_core(bench.server):
        return _drain(bench, queue, info, bench.sizes.drain, 1)


def drain_backlog(bench: Bench, queue: Queue, info: dict[str, Any]) -> Result:
    queue.call("enqueue_many", jobs=bench.sizes.backlog)
    return _drain(bench, queue, info, bench.sizes.backlog, 1)


def drain_history(bench: Bench, queue: Queue, info: dict[str, Any]) -> Result:
    queue.call("history", done=bench.sizes.finished, future=bench.sizes.future)
    queue.call("enqueue_many", jobs=bench.sizes.drain)
    bench.connection.execute("VACUUM ANALYZE")
    bench.connection.execute("CHECKPOINT")  # what the filling has left is not written meanwhile
    return _drain(bench, queue, info, bench.sizes.drain, 1)


def latency(bench: Bench, queue: Queue, _info: dict[str, Any]) -> Result:
    """From the commit of an enqueue to the handler's start, in an idle worker."""
    sizes = bench.sizes
    probe.clear(queue.probe)
    with queue.working(1) as workers:
        time.sleep(sizes.settle)
        queue.call("paced", jobs=sizes.paced, interval=sizes.interval)
        until = time.monotonic() + 10
        while probe.read(queue.probe).number < sizes.paced and time.monotonic() < until:
            time.sleep(0.05)
        waits = sorted(times.started - times.committed for times in probe.read_times(queue.probe, sizes.paced))
        written = workers.lines
    if not waits:
        raise StepFailed(f"{queue.name}: no job of {sizes.paced} was picked up")
    return {
        "jobs": len(waits),
        "p50_ms": waits[len(waits) // 2] * 1e3,
        "p99_ms": waits[min(len(waits) - 1, int(len(waits) * 0.99))] * 1e3,
        "log_lines": written,
    }


def _drain(bench: Bench, queue: Queue, info: dict[str, Any], number: int, processes: int) -> Result:
    before = bench.done(info)
    probe.clear(queue.probe)
    bench.connection.execute("CHECKPOINT")
    with queue.working(processes) as workers:
        until = time.monotonic() + DRAIN_SECONDS
        _await(lambda: probe.read(queue.probe).number > 0, until, 0.002)
        used = _used(bench, workers.pids)
        counted = probe.read(queue.probe).number
        _await(lambda: probe.read(queue.probe).number >= number, until, 0.01)
        _await(lambda: bench.done(info) - before >= number, until, 0.02)
        ended, used_then = time.monotonic(), _used(bench, workers.pids)
        written = workers.lines
    hits, done = probe.read(queue.probe), bench.done(info) - before
    if done < number:
        raise StepFailed(f"{queue.name}: {done} of {number} jobs were done after {DRAIN_SECONDS:.0f} s")
    rate, costs = _rate(number, ended - hits.first), _costs(used, used_then, number - counted)
    return {**rate, **costs, "log_lines": written}


def _used(bench: Bench, workers: list[int]) -> tuple[float, float]:
    """Processor seconds of the workers and of the server."""
    if not machine.IS_KNOWN:
        return 0.0, 0.0
    return machine.cpu_of(workers), machine.cpu_of([bench.server])


def _costs(before: tuple[float, float], after: tuple[float, float], number: int) -> Result:
    if not machine.IS_KNOWN:
        return {}
    worker, server = ((then - now) * 10_000 / max(1, number) for now, then in zip(before, after, strict=True))
    return {"worker_cpu": worker, "server_cpu": server}


def _await(holds: Callable[[], bool], until: float, every: float) -> None:
    while not holds() and time.monotonic() < until:
        time.sleep(every)


def _rate(number: int, seconds: float) -> Result:
    return {"jobs": number, "seconds": seconds, "rate": number / seconds}


MEASURES: dict[str, Callable[[Bench, Queue, dict[str, Any]], Result]] = {
    "one": enqueue_one,
    "many": enqueue_many,
    "drain1": drain_by(1),
    "drain2": drain_by(2),
    "onecore": drain_on_one_core,
    "backlog": drain_backlog,
    "history": drain_history,
    "latency": latency,
}
