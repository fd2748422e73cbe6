"""The worker says which handler blocks its event loop, and where that is."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from bench import Bench, eventually

import jobq
from jobq import State

pytestmark = pytest.mark.anyio
BLOCKS = " blocks the event loop"
AGAIN = "the event loop turns again after "


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobq.worker.looplag.LOOK_SECONDS", 0.02)
    monkeypatch.setattr("jobq.worker.looplag.LIMIT_SECONDS", 0.2)


def records(caplog: pytest.LogCaptureFixture, words: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if words in record.getMessage()]


def step_on_it(seconds: float) -> None:
    time.sleep(seconds)


async def test_f24_a_handler_that_blocks_the_loop_is_named_with_where_it_is(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture
) -> None:
    @app.handler("slow.image", queue="images")
    async def handler() -> None:
        await anyio.lowlevel.checkpoint()
        step_on_it(0.6)

    async with bench.working(app) as worker:
        id_ = bench.enqueue(handler)
        assert (await bench.until(id_)).state is State.DONE
        await eventually(lambda: records(caplog, AGAIN), "the word that it turns again")
        found = worker.stats()

    (record,) = records(caplog, BLOCKS)
    (over,) = records(caplog, AGAIN)
    assert record.getMessage().startswith(f"job {id_} (slow.image) blocks the event loop")
    assert (record.levelname, record.job_id, record.kind, record.queue) == ("WARNING", id_, "slow.image", "images")  # type: ignore[attr-defined]
    assert "in step_on_it" in str(record.stack_info)
    assert "in handler" in str(record.stack_info).splitlines()[0]  # nothing of the loop's, or of jobq's own
    assert f"(job {id_} (slow.image) had blocked it)" in over.getMessage()
    assert found.loop_blocks == 1
    assert timedelta(seconds=0.3) < found.longest_block < timedelta(seconds=5)


async def test_a_task_that_a_handler_has_left_behind_is_named_by_its_stack(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture
) -> None:
    tasks: list[asyncio.Task[None]] = []

    async def stray() -> None:
        await anyio.lowlevel.checkpoint()
        step_on_it(0.5)

    @app.handler("k")
    async def handler() -> None:
        tasks.append(asyncio.create_task(stray(), name="stray one"))

    async with bench.working(app):
        await bench.until(bench.enqueue(handler))
        await eventually(lambda: records(caplog, AGAIN), "the word that it turns again")

    (record,) = records(caplog, BLOCKS)
    assert record.getMessage().startswith("task 'stray one' blocks the event loop")
    assert "in stray" in str(record.stack_info)


async def test_a_kind_that_blocks_again_and_again_is_warned_of_once_a_minute(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture
) -> None:
    @app.handler("k")
    async def handler() -> None:
        step_on_it(0.3)

    async with bench.working(app) as worker:
        for _ in range(3):
            await bench.until(bench.enqueue(handler))
        await eventually(lambda: worker.stats().loop_blocks == 3, "three blocks")

    assert len(records(caplog, BLOCKS)) == 1


async def test_nothing_is_said_of_a_handler_that_takes_long_in_a_thread(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobq.worker.looplag.LIMIT_SECONDS", 1.0)
    handler: Any = app.handler("k")(lambda: step_on_it(1.3))

    async with bench.working(app) as worker:
        await bench.until(bench.enqueue(handler))

    assert records(caplog, BLOCKS) == []
    assert worker.stats().loop_blocks == 0
