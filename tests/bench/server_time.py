"""What one job costs the server's processor, in microseconds: its claim, and its end. One queue beside forty.

    python tests/bench/server_time.py [rounds] [jobs]

On a database of its own on the embedded server; each figure is the least of the rounds, since others only add to it.
No worker: the statements are sent one after the other, as a worker that drains a backlog sends them. Linux only.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

import jobq
from jobq.database import SESSION_SETTINGS
from jobq.handlers import Args
from jobq.model import Claimed
from jobq.store import claiming, ending
from jobq.tables import finished_jobs, jobs, workers
from jobq.worker.lanes import Lanes
from jobq_cli.bench.mixed import PRIORITIES, QUEUES, noop
from jobq_cli.bench.scratch import scratch

ME, ROOM, BATCH = 1, 700, 350  # of a worker that is busy: jobs of a claim, and ends that are written together
DAY = timedelta(days=1)


class Cost(NamedTuple):
    """Seconds of processor time of the server."""

    claim: float
    end: float


class Server:
    """The server's process behind a connection."""

    def __init__(self, connection: sa.Connection) -> None:
        pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        self._file = Path(f"/proc/{pid}/schedstat")
        self.spent = 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        before = self._used()
        yield
        self.spent += self._used() - before

    def _used(self) -> float:
        return int(self._file.read_text().split()[0]) / 1e9


def rows(number: int, *, of_many: bool) -> list[Args[...]]:
    kinds = [noop.options(queue=queue, priority=level) for level in PRIORITIES for queue in QUEUES]
    return [kinds[n % len(kinds)].args(-1) if of_many else noop.args(-1) for n in range(number)]


def fill(engine: sa.Engine, number: int, *, of_many: bool) -> None:
    with engine.begin() as connection:
        for table in (jobs, finished_jobs, workers):
            connection.execute(sa.delete(table))
        lease = {"lease": DAY, "lease_until": sa.func.now() + DAY}
        connection.execute(sa.insert(workers).values(id=ME, name="bench", **lease))
        jobq.enqueue_many(connection, noop, rows(number, of_many=of_many))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM ANALYZE jobq.jobs, jobq.finished_jobs")
        connection.exec_driver_sql("CHECKPOINT")


def lanes(*, of_many: bool) -> Lanes:
    found = Lanes(random.Random(1))
    found.serve({queue: 1 + n % 5 for n, queue in enumerate(QUEUES)} if of_many else {"default": 1})
    return found


def drained(engine: sa.Engine, number: int, *, of_many: bool) -> Cost:
    """For each of the jobs."""
    fill(engine, number, of_many=of_many)
    served = lanes(of_many=of_many)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for name, value in SESSION_SETTINGS.items():
            connection.exec_driver_sql(f"SET {name} = '{value}'")
        claims, ends = Server(connection), Server(connection)
        ended = 0
        while ended < number:
            asked = served.ask(ROOM)
            with claims.counted():
                claim = claiming.claim(connection, asked, worker_id=ME, kinds=["noop"], most=ROOM)
            served.absorb(asked, claim, room=ROOM)
            for first in range(0, len(claim.jobs), BATCH):
                with ends.counted():
                    end(connection, claim.jobs[first : first + BATCH])
            ended += len(claim.jobs)
    return Cost(claims.spent / number, ends.spent / number)


def end(connection: sa.Connection, batch: Sequence[Claimed]) -> None:
    ordered = sorted(batch, key=lambda job: job.id)
    columns = zip(*[(job.id, job.attempt, job.place, None) for job in ordered], strict=True)
    assert ending.finish_done(connection, *map(list, columns), worker_id=ME, keep=DAY) is None


def main(rounds: int = 5, number: int = 60_000) -> None:
    with scratch(None) as made:
        engine = made.database()
        for words, of_many in (("one queue", False), ("forty queues, four priorities", True)):
            costs = [drained(engine, number, of_many=of_many) for _ in range(rounds)]
            claim, written = (1e6 * min(values) for values in zip(*costs, strict=True))
            print(f"{words:30} claim {claim:5.2f} us, end {written:5.2f} us")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
