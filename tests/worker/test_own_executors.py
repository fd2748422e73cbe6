"""Executors of an application's own, and one that does not keep its promises."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from bench import Bench, Effects, Gate, eventually

import jobq
from jobq import State
from jobq.executors import Call
from jobq.verdict import Ended

pytestmark = pytest.mark.anyio


class Recorder:
    """Runs functions where it stands, and keeps a list."""

    left_behind: frozenset[int] = frozenset()

    def __init__(self) -> None:
        self.ran, self.is_closed = Effects(), False

    async def run(self, call: Call) -> Ended:
        self.ran.add(call.context.job.kind)
        return Ended(call.function(**call.arguments))

    async def close(self) -> None:
        self.is_closed = True


async def test_a_handler_runs_in_the_executor_that_it_names(bench: Bench, app: jobq.App) -> None:
    recorder = Recorder()
    handler: Any = app.handler("k", executor="recorder")(lambda n: f"got {n}")

    async with bench.working(app, executors={"recorder": recorder}):
        job = await bench.until(bench.enqueue(handler, n=7))
        assert not recorder.is_closed

    assert (job.outcome, recorder.ran.seen, recorder.is_closed) == ("ok: got 7", ["k"], True)


def test_an_executor_that_nobody_gave_is_refused_by_its_name(app: jobq.App) -> None:
    app.handler("k", executor="elsewhere")(lambda: None)

    with pytest.raises(jobq.WorkerError, match="no executor named elsewhere"):
        jobq.Worker(app, "postgresql://127.0.0.1/any")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"dask_scheduler": "tcp://127.0.0.1:8786"},
            ['dask_scheduler has no use here: no handler has executor="dask"'],
        ),
        ({"processes": 2}, ['processes has no use here: no handler has executor="process" or executor="dask"']),
        ({}, []),
    ],
)
async def test_an_option_that_counts_for_none_of_the_handlers_is_told_of(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture, given: dict[str, Any], said: list[str]
) -> None:
    app.handler("k")(lambda: None)

    with caplog.at_level("INFO", "jobq.worker"):
        async with bench.working(app, **given):
            pass

    assert [line for line in caplog.messages if "no use here" in line] == said


async def test_an_executor_that_raises_is_a_failed_attempt(bench: Bench, app: jobq.App) -> None:
    class Broken(Recorder):
        async def run(self, call: Call) -> Ended:
            raise RuntimeError("no child process")

    handler: Any = app.handler("k", executor="broken", max_attempts=1)(lambda: None)

    async with bench.working(app, executors={"broken": Broken()}):
        job = await bench.until(bench.enqueue(handler))

    assert (job.state, job.outcome) == (State.DEAD, "err: RuntimeError: no child process")


class Beginner(Recorder):
    """Begins what it can, and ends it when the test says so."""

    def __init__(self, *, places: int = 1) -> None:
        super().__init__()
        self.begun: list[asyncio.Future[Ended]] = []
        self.places = places

    def begin(self, call: Call) -> asyncio.Future[Ended] | None:
        if len(self.begun) == self.places:
            return None
        self.begun.append(asyncio.get_running_loop().create_future())
        return self.begun[-1]


async def test_an_executor_that_needs_no_task_begins_a_call_and_is_asked_to_run_what_it_cannot(
    bench: Bench, app: jobq.App
) -> None:
    beginner = Beginner()
    handler: Any = app.handler("k", executor="beginner")(lambda: "run")
    async with bench.working(app, executors={"beginner": beginner}):
        first = bench.enqueue(handler)
        await eventually(lambda: beginner.begun, "the first one's begin")
        second = await bench.until(bench.enqueue(handler))
        beginner.begun[0].set_result(Ended("begun"))
        assert (await bench.until(first)).outcome == "ok: begun"
    assert second.outcome == "ok: run"


@pytest.mark.parametrize(
    "end",
    [
        lambda future: future.set_exception(RuntimeError("no child process")),
        lambda future: future.set_result(Ended(error=RuntimeError("no child process"))),
    ],
)
async def test_what_was_begun_without_a_task_may_end_by_an_error(
    bench: Bench, app: jobq.App, end: Callable[[asyncio.Future[Ended]], None]
) -> None:
    beginner = Beginner()
    handler: Any = app.handler("k", executor="beginner", max_attempts=1)(lambda: None)
    async with bench.working(app, executors={"beginner": beginner}):
        id_ = bench.enqueue(handler)
        await eventually(lambda: beginner.begun, "its begin")
        end(beginner.begun[0])
        job = await bench.until(id_)
    assert (job.state, job.outcome) == (State.DEAD, "err: RuntimeError: no child process")


async def test_what_was_begun_without_a_task_is_cancelled_at_its_timeout(bench: Bench, app: jobq.App) -> None:
    beginner = Beginner()
    handler: Any = app.handler("k", executor="beginner", max_attempts=1, timeout=timedelta(milliseconds=20))(
        lambda: None
    )
    async with bench.working(app, executors={"beginner": beginner}) as worker:
        job = await bench.until(bench.enqueue(handler))
        assert worker.stats().left_behind == 0
    assert beginner.begun[0].cancelled()
    assert [one.error for one in job.errors] == ["TimeoutError"]


async def test_what_begin_raises_and_args_that_do_not_fit_are_failed_attempts(bench: Bench, app: jobq.App) -> None:
    class Broken(Beginner):
        def begin(self, call: Call) -> asyncio.Future[Ended] | None:
            raise RuntimeError("no child process")

    app.handler("k", executor="beginner", max_attempts=1)(_needs_n)
    async with bench.working(app, executors={"beginner": Broken()}):
        broken, misfit = bench.add("k", args={"n": 1}), bench.add("k", args={"m": 1})
        assert (await bench.until(broken)).outcome == "err: RuntimeError: no child process"
        assert ((await bench.until(misfit)).outcome or "").startswith("err: jobq.errors.ArgsError")


def _needs_n(n: int) -> None: ...


async def test_threads_are_reused_and_as_many_as_jobs_run_at_a_time(bench: Bench, app: jobq.App) -> None:
    gate, names = Gate(), Effects()

    @app.handler("k")
    def handler() -> None:
        names.add(threading.current_thread().name)
        gate.pass_in_thread()

    async with bench.working(app, concurrency=3):
        bench.enqueue_many(handler, 9)
        await gate.until_waiting(3)
        gate.open()
        await bench.until_all_ended()

    assert len(set(names.seen)) == 3
    assert not [thread for thread in threading.enumerate() if thread.name in names.seen and not thread.daemon]


async def test_a_thread_that_cannot_be_started_fails_one_attempt_and_stops_no_later_one(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, refused = threading.Thread.start, Effects()

    def refuse_once(thread: threading.Thread) -> None:
        if thread.name.startswith("jobq-handler") and not refused:
            refused.add(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_once)
    handler: Any = app.handler("k", retry=lambda failures, error: timedelta(0))(lambda: None)

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler))

    assert (job.state, job.attempt, job.errors[0].message) == (State.DONE, 2, "can't start new thread")
