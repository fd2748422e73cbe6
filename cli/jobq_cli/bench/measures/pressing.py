"""Jobs in and out at a steady rate while another session holds a snapshot, so that nothing dead is cleaned away."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

import jobq
from jobq.model import Claimed
from jobq.store import claiming, ending, leasing
from jobq.tables import jobs
from jobq.worker.lanes import Lanes
from jobq_cli.bench.app import noop
from jobq_cli.bench.bench import Bench, percentile
from jobq_cli.bench.figures import Figure
from jobq_cli.failures import Failed

ME = 1
BATCH = 100
PART = 0.05  # of the time, at the start and at the end
WARM = 10  # claims before the snapshot is taken: the first ones are compiled and planned
DAY = timedelta(days=1)


def measure(bench: Bench) -> Iterator[Figure]:
    """How long a claim takes at the end, against the start: a worker's statements and cursors, without its handlers.

    The ratio is divided by that of another database, in which nobody holds a snapshot and which gets the same in turn:
    a machine that has become slower meanwhile is so for both.
    """
    bench.tell(f"claims under an open snapshot, {bench.sizes.pressure_seconds:.0f} s")
    with bench.database() as engine, bench.database() as other:
        held, free, rate = _pressed(engine, other, bench.sizes.pressure_rate, bench.sizes.pressure_seconds)
    early, late = _ends(held)
    usual_early, usual_late = _ends(free)
    yield Figure("snapshot", "claim at the start, p50", (early,), "ms", more_is_better=False)
    yield Figure("snapshot", "claim at the end, p50", (late,), "ms", more_is_better=False)
    ratio = late / early / (usual_late / usual_early)
    yield Figure("snapshot", "the end / the start", (ratio,), "x", 1.5, 1.1, False)
    yield Figure("snapshot", "jobs in and out", (rate,), "jobs/s")


def _ends(claims: list[float]) -> tuple[float, float]:
    """The median at the start and at the end, in milliseconds."""
    part = max(1, int(len(claims) * PART))
    return percentile(claims[:part], 0.5) * 1e3, percentile(claims[-part:], 0.5) * 1e3


def _pressed(engine: sa.Engine, other: sa.Engine, rate: int, seconds: float) -> tuple[list[float], list[float], float]:
    """The claims beside a snapshot, those of the other database, and the rate in each."""
    with ExitStack() as stack:
        sides = [stack.enter_context(_side(each)) for each in (engine, other)]
        for side in sides:
            for _ in range(WARM):
                side.through()
        held: list[float] = []
        free: list[float] = []
        stack.enter_context(_snapshot(engine))
        began = time.monotonic()
        while (now := time.monotonic()) - began < seconds:
            held.append(sides[0].through())
            free.append(sides[1].through())
            time.sleep(max(0.0, now + BATCH / rate - time.monotonic()))
        return held, free, len(held) * BATCH / (time.monotonic() - began)


@contextmanager
def _snapshot(engine: sa.Engine) -> Iterator[None]:
    """Of another session, which keeps it."""
    with engine.connect() as connection:
        connection.execution_options(isolation_level="REPEATABLE READ")
        connection.execute(sa.select(sa.func.count()).select_from(jobs))
        yield


@contextmanager
def _side(engine: sa.Engine) -> Iterator[Side]:
    lanes = Lanes()
    lanes.serve({"default": 1})
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection, engine.connect() as producer:
        leasing.register(connection, _registration())
        yield Side(producer, connection, lanes)


@dataclass(frozen=True, slots=True)
class Side:
    """A database's producer and worker."""

    producer: sa.Connection
    connection: sa.Connection
    lanes: Lanes

    def through(self) -> float:
        """A batch, from its enqueue to its end; how long the claim took."""
        jobq.enqueue_many(self.producer, noop, [{"number": -1}] * BATCH)
        self.producer.commit()
        asked = self.lanes.ask(BATCH)
        began = time.perf_counter()
        claim = claiming.claim(self.connection, asked, worker_id=ME, kinds=["noop"], most=BATCH)
        took = time.perf_counter() - began
        self.lanes.absorb(asked, claim, room=BATCH)
        if claim.jobs:
            self._end(claim.jobs)
        return took

    def _end(self, claimed: Sequence[Claimed]) -> None:
        """As a worker ends what has gone well. Raises: Failed, when that was not its usual path: one statement."""
        ordered = sorted(claimed, key=lambda job: job.id)
        ids, attempts, places = zip(*((job.id, job.attempt, job.place) for job in ordered), strict=True)
        others = ending.finish_done(self.connection, ids, attempts, places, [None] * len(ids), worker_id=ME, keep=DAY)
        if others is not None:
            raise Failed("jobs under a snapshot were not where they had been claimed")


def _registration() -> leasing.Registration:
    return leasing.Registration(
        id=ME, name="bench", hostname="bench", pid=1, version="", queues=None, kinds=["noop"], concurrency=BATCH,
        lease=DAY,
    )  # fmt: skip
