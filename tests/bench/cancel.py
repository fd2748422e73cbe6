"""From the commit of a cancel to the CancelledError of an async handler, and to the end of a child process.

    python tests/bench/cancel.py DATABASE_URL [rounds]

The database is one that has been migrated. The lease is a minute: its heartbeat would take up to 10 s.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import sqlalchemy as sa

import jobq
from jobq.urls import normalize

sys.path.insert(0, str(Path(__file__).parent))
app = jobq.App()
stopped: dict[int, float] = {}


@app.handler("in_loop")
async def in_loop() -> None:
    try:
        await anyio.sleep_forever()
    finally:
        stopped[jobq.current().job.id] = time.perf_counter()


@app.handler("in_process", executor="process")
def in_process(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    while True:
        time.sleep(1)


def cancel(engine: sa.Engine, id_: int) -> float:
    with engine.begin() as connection:
        jobq.cancel(connection, id_, running=True)
    return time.perf_counter()


async def of_loop(engine: sa.Engine) -> float:
    with engine.begin() as connection:
        id_ = jobq.enqueue(connection, in_loop).id
    await until(lambda: state(engine, id_) == "running")
    began = await anyio.to_thread.run_sync(cancel, engine, id_)
    await until(lambda: id_ in stopped)
    return stopped[id_] - began


async def of_process(engine: sa.Engine, path: Path) -> float:
    with engine.begin() as connection:
        id_ = jobq.enqueue(connection, in_process, str(path)).id
    await until(lambda: pid_in(path))
    pid = pid_in(path)
    began = await anyio.to_thread.run_sync(cancel, engine, id_)
    await until(lambda: not os.path.exists(f"/proc/{pid}"))
    os.unlink(path)
    return time.perf_counter() - began


def pid_in(path: Path) -> int:
    """0 while nothing is written there."""
    return int(path.read_text() or 0) if path.exists() else 0


def state(engine: sa.Engine, id_: int) -> str | None:
    with engine.begin() as connection:
        job = jobq.get(connection, id_)
    return None if job is None else job.state.value


async def until(look: Callable[[], object]) -> None:
    while not look():  # noqa: ASYNC110  # what it looks at is in the database or in another process
        await anyio.sleep(0.002)


async def main(url: str, rounds: int) -> None:
    from cancel import app as imported  # the module that children import

    engine = sa.create_engine(normalize(url))
    worker = jobq.Worker(imported, url, processes=1)
    with TemporaryDirectory() as folder:
        async with anyio.create_task_group() as group:
            await group.start(worker.run)
            for name, measure in {
                "async handler": lambda: of_loop(engine),
                "child process": lambda: of_process(engine, Path(folder, "pid")),
            }.items():
                took = [await measure() for _ in range(rounds)]
                print(f"{name}: p50 {statistics.median(took) * 1e3:.0f} ms, max {max(took) * 1e3:.0f} ms of {rounds}")
            worker.stop()
    engine.dispose()


if __name__ == "__main__":
    import cancel as itself

    anyio.run(itself.main, sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20)
