"""How a worker begins, and why it does not."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from bench import Bench, Run, eventually, unwrapped

import jobq

pytestmark = pytest.mark.anyio


async def test_a_worker_that_was_stopped_before_it_started_does_nothing(bench: Bench, app: jobq.App) -> None:
    handler: Any = app.handler("k")(lambda: None)
    id_ = bench.enqueue(handler)
    worker = jobq.Worker(app, bench.url)
    worker.stop()

    assert await worker.run() == 0
    async with anyio.create_task_group() as group:
        await group.start(worker.run)

    assert bench.job(id_).attempt == 0


@pytest.mark.parametrize("host", ["127.0.0.1:1", "no-such-host.invalid"])
async def test_a_worker_waits_for_a_server_out_of_reach_and_can_be_stopped_meanwhile(app: jobq.App, host: str) -> None:
    run = Run(jobq.Worker(app, f"postgresql://{host}/nowhere"))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await eventually(lambda: run.worker._assembly and run.worker.stats().away_for, "a failure")
        run.worker.stop()
        assert await run.end() == 0


async def test_a_worker_says_why_it_cannot_start(bench: Bench, empty_database_url: str, app: jobq.App) -> None:
    wrong = bench.engine.url.set(password="sekret")
    with pytest.raises(jobq.WorkerError, match=r"database refuses the worker: .*password") as refused:
        await jobq.Worker(app, wrong).run()
    with pytest.raises(jobq.WorkerError, match=r"database .nowhere. does not exist"):
        await jobq.Worker(app, bench.engine.url.set(database="nowhere")).run()
    with pytest.raises(jobq.SchemaError):
        await jobq.Worker(app, empty_database_url).run()

    assert "sekret" not in str(refused.value)


async def test_a_worker_runs_once_at_a_time_and_keeps_its_numbers(bench: Bench, app: jobq.App) -> None:
    worker = jobq.Worker(app, bench.url)
    with pytest.raises(jobq.WorkerError, match="has not run yet"):
        worker.stats()

    with unwrapped():
        async with anyio.create_task_group() as group:
            await group.start(worker.run)
            with pytest.raises(jobq.WorkerError, match="running already"):
                await worker.run()
            worker.stop()

    assert worker.stats().worker_id is None
