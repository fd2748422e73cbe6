"""jobq, driven through its public API like every other queue; see peers/common.py for the steps.

BENCH_EXECUTOR=thread: the handler is a plain function, which runs in threads. BENCH_UVLOOP=0: asyncio's own event loop.
"""

from __future__ import annotations

import logging
import os
import signal

import anyio
import sqlalchemy as sa
from common import PROBE, Peer, main, now, pace
from sqlalchemy.orm import Session

import jobq
from jobq.urls import normalize
from jobq.worker.collector import spare_what_stays

app = jobq.App()

if os.environ.get("BENCH_EXECUTOR") == "thread":

    @app.handler("noop")
    def noop(i: int = -1) -> None:
        PROBE.hit(i)

else:

    @app.handler("noop")
    async def noop(i: int = -1) -> None:
        PROBE.hit(i)


HISTORY = """
    INSERT INTO jobq.finished_jobs (
        id, queue, kind, args, priority, run_at, attempt, failures, created_at, attempted_at, meta, errors, state,
        outcome, finished_at, expires_at
    )
    SELECT nextval('jobq.jobs_id_seq'), 'default', 'noop', '{"i": -1}', 1, now(), 1, 0, now(), now(), '{}', '[]',
        'done', 'ok', now(), now() + interval '1 day'
    FROM generate_series(1, %(done)s)
"""
FUTURE = """
    INSERT INTO jobq.jobs (queue, kind, args, run_at)
    SELECT 'default', 'noop', '{"i": -1}', now() + interval '1 day' + g * interval '1 s'
    FROM generate_series(1, %(future)s) g
"""


class Jobq(Peer):
    package = "jobq"
    done_sql = "SELECT count(*) FROM jobq.finished_jobs WHERE state = 'done'"

    def __init__(self) -> None:
        super().__init__()
        self.concurrency = int(os.environ.get("BENCH_CONCURRENCY", "200"))
        self.uvloop = os.environ.get("BENCH_UVLOOP", "1") == "1" and _has_uvloop()
        kind = os.environ.get("BENCH_EXECUTOR", "async")
        loop = "uvloop" if self.uvloop else "asyncio"
        self.settings = (
            f"concurrency {self.concurrency}, {kind} handlers, {loop}, log at INFO to a file; everything on: fences,"
            " leases, time limits, outcomes; one by one: a Session and a transaction each; bulk: enqueue_many"
        )
        self.engine = sa.create_engine(normalize(self.dsn))

    def setup(self) -> None:
        self.fresh_schema()
        jobq.migrate(self.engine)

    def enqueue_one(self, n: int) -> float:
        self._enqueue()
        began = now()
        for _ in range(n):
            self._enqueue()
        return now() - began

    def enqueue_many(self, n: int) -> float:
        rows = [{"i": -1} for _ in range(n)]
        with Session(self.engine) as session:
            session.connection()  # as the others are connected by then
            began = now()
            jobq.enqueue_many(session, noop, rows)
            session.commit()
            return now() - began

    def paced(self, n: int, interval: float) -> None:
        self._enqueue()
        for i in pace(n, interval):
            before = now()
            self._enqueue(i)
            PROBE.sent(i, before, now())

    def history(self, done: int, future: int) -> None:
        with self.connect() as connection:
            connection.execute(HISTORY.replace("%(done)s", str(done)))
            connection.execute(FUTURE.replace("%(future)s", str(future)))

    def worker(self) -> None:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        anyio.run(self._work, backend_options={"use_uvloop": self.uvloop})

    async def _work(self) -> None:
        worker = jobq.Worker(app, self.engine, concurrency=self.concurrency)
        async with anyio.create_task_group() as group:
            await group.start(worker.run)
            spare_what_stays()  # as `jobq run` does
            with anyio.open_signal_receiver(signal.SIGTERM) as signals:
                async for _ in signals:
                    worker.stop()
                    return

    def _enqueue(self, i: int = -1) -> None:
        with Session(self.engine) as session:
            jobq.enqueue(session, noop, i)
            session.commit()


def _has_uvloop() -> bool:
    try:
        import uvloop  # noqa: F401
    except ImportError:
        return False
    return True


if __name__ == "__main__":
    main(Jobq)
