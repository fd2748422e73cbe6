"""jobq, driven through its public API like every other queue; see peers/common.py for the steps.

The worker has what `jobq run --metrics-port 0 --uvloop` has. BENCH_UVLOOP=0: asyncio's own event loop.
BENCH_EXECUTOR=thread: the handler is a plain function, which runs in threads.
"""

from __future__ import annotations

import logging
import os
import signal
from datetime import timedelta

import anyio
import sqlalchemy as sa
from common import PROBE, Peer, main, now, pace
from prometheus_client import REGISTRY, start_http_server
from sqlalchemy.orm import Session

import jobq
from jobq.metrics import Collector
from jobq.urls import normalize
from jobq.worker.collector import spare_what_stays

TIMEOUT = timedelta(minutes=5)
app = jobq.App()

if os.environ.get("BENCH_EXECUTOR") == "thread":

    @app.handler("noop", timeout=TIMEOUT)
    def noop(i: int = -1) -> None:
        PROBE.hit(i)

else:

    @app.handler("noop", timeout=TIMEOUT)
    async def noop(i: int = -1) -> None:
        PROBE.hit(i)


class Jobq(Peer):
    package = "jobq"
    done_sql = "SELECT count(*) FROM jobq.finished_jobs WHERE state = 'done'"

    def __init__(self) -> None:
        super().__init__()
        self.concurrency = int(os.environ.get("BENCH_CONCURRENCY", "200"))
        self.uvloop = os.environ.get("BENCH_UVLOOP", "1") == "1" and _has_uvloop()
        kind = os.environ.get("BENCH_EXECUTOR", "async")
        self.loop = "uvloop" if self.uvloop else "asyncio"
        self.at_once = f"{self.concurrency} at a time"
        self.settings = (
            f"concurrency {self.concurrency}, {kind} handlers, log at INFO to a file; everything on: fences, leases,"
            f" a timeout of {TIMEOUT.seconds // 60} minutes, outcomes, metrics on a port; one by one: a Session and a"
            " transaction each; bulk: enqueue_many"
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
        from jobq_cli.bench.drains import fill  # here: a worker has no use for all that this imports
        from jobq_cli.bench.probe import VARIABLE

        fill(self.engine, os.environ.get(VARIABLE, ""), finished=done, future=future)

    def worker(self) -> None:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        anyio.run(self._work, backend_options={"use_uvloop": self.uvloop})

    async def _work(self) -> None:
        worker = jobq.Worker(app, self.engine, concurrency=self.concurrency)
        REGISTRY.register(Collector(self.engine, worker))
        start_http_server(0, "127.0.0.1")  # a free port
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
    """As in peers/common.py; a runner with a common.py of its own need not have it."""
    try:
        import uvloop  # noqa: F401
    except ImportError:
        return False
    return True


if __name__ == "__main__":
    main(Jobq)
