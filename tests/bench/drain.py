"""A backlog of no-op jobs, drained by one worker with everything on: fences, leases, outcomes, the log's counts.

    python tests/bench/drain.py DATABASE_URL [rounds] [jobs] [concurrency]

The database is an empty one that has been migrated; its jobs are deleted before each round.
"""

from __future__ import annotations

import sys
import time

import anyio
import sqlalchemy as sa

import jobq
from jobq import tables
from jobq.urls import normalize
from jobq.worker.collector import spare_what_stays

app = jobq.App()


@app.handler("noop")
async def noop(number: int) -> None: ...


def fill(engine: sa.Engine, jobs: int) -> float:
    """Jobs enqueued a second, with their ids."""
    with engine.begin() as connection:
        for table in (tables.jobs, tables.finished_jobs):
            connection.execute(sa.delete(table))
    began = time.perf_counter()
    with engine.begin() as connection:
        jobq.enqueue_many(connection, noop, [{"number": number} for number in range(jobs)])
    return jobs / (time.perf_counter() - began)


async def drain(url: sa.URL, jobs: int, concurrency: int) -> float:
    """Jobs recorded a second, from the worker's first claim on."""
    worker = jobq.Worker(app, url, concurrency=concurrency)
    async with anyio.create_task_group() as group:
        await group.start(worker.run)
        spare_what_stays()  # as `jobq run` does
        began = time.perf_counter()
        while worker.stats().ok < jobs:  # noqa: ASYNC110  # nobody tells
            await anyio.sleep(0.02)
        took = time.perf_counter() - began
        worker.stop()
    return jobs / took


def main(url: str, rounds: int = 3, jobs: int = 20_000, concurrency: int = 200) -> None:
    engine = sa.create_engine(normalize(url))
    for _ in range(rounds):
        filled = fill(engine, jobs)
        print(f"enqueue_many {filled:.0f}/s, drain {anyio.run(drain, engine.url, jobs, concurrency):.0f}/s")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
