"""1 000 jobs of 50 ms CPU work on 2 child processes: through the queue, and in the same children without one.

    python tests/bench/process_jobs.py DATABASE_URL [rounds] [jobs]

The database is an empty one that has been migrated. Both ways take turns, since the machine may be busy.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "worker"))

import process_app
import sqlalchemy as sa

import jobq
from jobq.executors import Call, Setup
from jobq.executors.process import ProcessExecutor, ProcessOptions
from jobq.model import Claimed
from jobq.source import source_of

SECONDS = 0.05
SLOTS = 2


class NoQueue:
    """An attempt that nobody has claimed."""

    def __init__(self, number: int) -> None:
        now, args = datetime.now(UTC), json.dumps({"seconds": SECONDS})
        self.job = Claimed(number, 1, "default", "work", args, 1, now, 0, None, "{}", now, "(0,1)", 1, now)

    def waits(self) -> None: ...

    def begins(self) -> None: ...

    def completes(self) -> bool:
        return False

    def completed(self, committed: bool) -> None: ...

    async def settled(self) -> bool:
        return False


async def without_a_queue(url: str, jobs: int) -> float:
    app, source = process_app.app, source_of(url)
    setup = Setup(name="process", app=app, worker="bench", concurrency=SLOTS, source=source)
    pool = ProcessExecutor(setup, ProcessOptions(SLOTS))
    await asyncio.gather(pool.start(), pool.start())
    numbers = iter(range(jobs))

    async def slot() -> None:
        for number in numbers:
            call = Call(process_app.work.function, {}, None, (), NoQueue(number))  # type: ignore[arg-type]
            assert (await pool.run(call)).error is None

    started = time.perf_counter()
    await asyncio.gather(*(slot() for _ in range(SLOTS)))
    took = time.perf_counter() - started
    await pool.close()
    return took


async def through_the_queue(url: str, jobs: int) -> float:
    engine = sa.create_engine(url)
    worker = jobq.Worker(process_app.app, url, processes=SLOTS, queues=["default"])
    run = asyncio.ensure_future(worker.run())
    with engine.begin() as connection:
        jobq.enqueue_many(connection, process_app.work, [{"seconds": 0.3}] * SLOTS)
    await until_ended(worker, SLOTS)
    with engine.begin() as connection:
        jobq.enqueue_many(connection, process_app.work, [{"seconds": SECONDS}] * jobs)
    started = time.perf_counter()
    await until_ended(worker, SLOTS + jobs)
    took = time.perf_counter() - started
    worker.stop()
    await run
    engine.dispose()
    return took


async def until_ended(worker: jobq.Worker, number: int) -> None:
    ended = 0
    while ended < number:
        await asyncio.sleep(0.05)
        ended = worker.stats().ok


async def main(url: str, rounds: int = 3, jobs: int = 1_000) -> None:
    for _ in range(rounds):
        alone = await without_a_queue(url, jobs)
        queued = await through_the_queue(url, jobs)
        print(
            f"{jobs} jobs of {SECONDS} s on {SLOTS}: without {alone:.2f} s, queued {queued:.2f} s, {queued / alone:.2f}"
        )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
