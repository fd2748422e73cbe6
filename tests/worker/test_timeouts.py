"""Jobs that take longer than they may: in the loop they are cancelled, in a thread they are left behind."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import anyio
import pytest
from bench import Bench, Effects, Gate, eventually

import jobq
from jobq import State

pytestmark = pytest.mark.anyio

SHORT = timedelta(milliseconds=50)


async def test_an_async_handler_is_cancelled_and_cleans_up(bench: Bench, app: jobq.App) -> None:
    seen = Effects()

    @app.handler("k", timeout=SHORT, max_attempts=1)
    async def handler() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            seen.add(jobq.current().cancelled)

    async with bench.working(app) as worker:
        job = await bench.until(bench.enqueue(handler))

    assert (job.state, job.errors[0].error, seen.seen) == (State.DEAD, "TimeoutError", [True])
    assert job.outcome == "err: TimeoutError: took longer than its timeout of 0:00:00.050000"
    assert worker.stats().left_behind == 0


async def test_a_timeout_is_retried_like_any_error(bench: Bench, app: jobq.App) -> None:
    @app.handler("k", timeout=SHORT, retry=lambda failures, error: timedelta(0) if failures == 1 else None)
    async def handler() -> None:
        await anyio.sleep_forever()

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler))

    assert (job.state, job.attempt, [error.error for error in job.errors]) == (State.DEAD, 2, ["TimeoutError"] * 2)


async def test_a_jobs_own_timeout_wins_over_the_handlers(bench: Bench, app: jobq.App) -> None:
    @app.handler("k", timeout=timedelta(hours=1), max_attempts=1)
    async def handler() -> None:
        await anyio.sleep_forever()

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler.options(timeout=SHORT)))

    assert job.outcome == "err: TimeoutError: took longer than its timeout of 0:00:00.050000"


async def test_an_async_handler_that_swallows_the_cancellation_is_left_behind(bench: Bench, app: jobq.App) -> None:
    gate = Gate()

    @app.handler("k", timeout=SHORT, max_attempts=1)
    async def handler() -> None:
        while gate.is_shut:
            try:
                await gate.pass_()
            except BaseException:
                continue

    async with bench.working(app) as worker:
        job = await bench.until(bench.enqueue(handler))
        assert (job.state, job.errors[0].error) == (State.DEAD, "TimeoutError")
        assert (worker.stats().left_behind, worker.stats().running) == (1, 0)
        gate.open()
        await eventually(lambda: not worker.stats().left_behind, "the handler's end")


async def test_a_thread_is_left_behind_and_its_job_runs_again_only_after_its_end(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobq.worker.intake.STILL_RUNNING", timedelta(milliseconds=50))
    gate, seen = Gate(), Effects()

    @app.handler("k", timeout=timedelta(milliseconds=200), retry=lambda failures, error: timedelta(0))
    def handler() -> None:
        attempt = jobq.current().job.attempt
        seen.add(("begins", attempt))
        if attempt == 1:
            gate.pass_in_thread()
        seen.add(("ends", attempt))

    async with bench.working(app) as worker:
        id_ = bench.enqueue(handler)
        job = await bench.until_retried(id_)
        assert job.errors[0].error == "TimeoutError"
        await eventually(lambda: worker.stats().snooze >= 2, "two claims that were put back")
        assert worker.stats().left_behind == 1
        assert seen.seen == [("begins", 1)]
        gate.open()
        job = await bench.until(id_)

    assert (job.state, job.failures) == (State.DONE, 1)
    assert seen.seen == [("begins", 1), ("ends", 1), ("begins", job.attempt), ("ends", job.attempt)]
    assert worker.stats().left_behind == 0


async def test_a_thread_that_looks_at_cancelled_is_not_left_behind(bench: Bench, app: jobq.App) -> None:
    seen = Effects()

    @app.handler("k", timeout=SHORT, max_attempts=1)
    def handler() -> None:
        gate = Gate()
        while not jobq.current().cancelled:
            gate.wait_in_thread(0.005)
        seen.add("told")

    async with bench.working(app) as worker:
        job = await bench.until(bench.enqueue(handler))
        assert worker.stats().left_behind == 0

    assert (job.state, job.errors[0].error, seen.seen) == (State.DEAD, "TimeoutError", ["told"])


async def test_the_worker_goes_on_while_a_thread_is_left_behind(bench: Bench, app: jobq.App) -> None:
    gate = Gate()
    stuck: Any = app.handler("stuck", timeout=SHORT, max_attempts=1)(gate.pass_in_thread)
    quick: Any = app.handler("quick")(lambda: None)

    async with bench.working(app, concurrency=1):
        assert (await bench.until(bench.enqueue(stuck))).state is State.DEAD
        assert (await bench.until(bench.enqueue(quick))).state is State.DONE
        gate.open()


async def test_of_many_that_run_each_is_stopped_at_its_own_time(bench: Bench, app: jobq.App) -> None:
    @app.handler("k", max_attempts=1)
    async def handler() -> None:
        await anyio.sleep_forever()

    timeouts = [timedelta(milliseconds=milliseconds) for milliseconds in (900, 100, 500, 300, 700, 200)]
    ids = [bench.enqueue(handler.options(timeout=timeout)) for timeout in timeouts]
    ids.append(bench.enqueue(handler.options(timeout=timedelta(hours=1))))

    async with bench.working(app, grace=timedelta(0)) as worker:
        ended = [await bench.until(id_) for id_ in ids[:-1]]
        assert worker.stats().running == 1

    for job, timeout in zip(ended, timeouts, strict=True):
        assert job.finished_at is not None
        assert job.attempted_at is not None
        assert timeout <= job.finished_at - job.attempted_at < timeout + timedelta(seconds=2)
