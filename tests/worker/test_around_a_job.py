"""What an application puts around its jobs: app.around, app.lifespan, jobq.current(), app.on_error."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from bench import Bench, Effects, Gate

import jobq
from jobq import State

pytestmark = pytest.mark.anyio


async def test_around_is_entered_in_order_in_the_handlers_own_place(bench: Bench, app: jobq.App) -> None:
    seen, inside = Effects(), ContextVar("inside", default="nothing")

    def around(name: str) -> Any:
        @contextmanager
        def manager() -> Iterator[None]:
            seen.add(f"enter {name}")
            token = inside.set(name)
            yield
            inside.reset(token)
            seen.add(f"exit {name}")

        return manager

    app.around(around("outer"))
    app.around(around("inner"))
    handlers: list[Any] = [
        app.handler("thread")(lambda: seen.add(inside.get())),
        app.handler("loop")(_async(lambda: seen.add(inside.get()))),
    ]

    async with bench.working(app):
        for handler in handlers:
            await bench.until(bench.enqueue(handler))

    assert seen.seen == ["enter outer", "enter inner", "inner", "exit inner", "exit outer"] * 2


def _async(function: Any) -> Any:
    async def handler() -> None:
        function()

    return handler


async def test_an_async_around_serves_async_handlers_and_is_refused_for_plain_ones(bench: Bench, app: jobq.App) -> None:
    seen = Effects()

    @app.around
    @asynccontextmanager
    async def manager() -> AsyncIterator[None]:
        seen.add("enter")
        await anyio.lowlevel.checkpoint()
        yield
        seen.add("exit")

    loop: Any = app.handler("loop")(_async(lambda: seen.add("work")))
    thread: Any = app.handler("thread", max_attempts=1)(lambda: seen.add("work"))

    async with bench.working(app):
        assert (await bench.until(bench.enqueue(loop))).state is State.DONE
        job = await bench.until(bench.enqueue(thread))

    assert seen.seen == ["enter", "work", "exit"]
    assert (job.state, job.errors[0].error) == (State.DEAD, "TypeError")
    assert "no context manager that a plain handler can enter" in job.errors[0].message


@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_an_around_that_raises_is_a_failed_attempt(bench: Bench, app: jobq.App, where: str) -> None:
    @app.around
    @contextmanager
    def manager() -> Iterator[None]:
        raise LookupError("no tenant")
        yield

    function: Any = _async(lambda: None) if where == "loop" else lambda: None
    handler: Any = app.handler("k", max_attempts=1)(function)

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler))

    assert job.outcome == "err: LookupError: no tenant"


async def test_the_lifespan_is_open_while_handlers_run_and_gives_them_its_state(bench: Bench, app: jobq.App) -> None:
    seen = Effects()

    @app.lifespan
    async def clients() -> AsyncIterator[dict[str, str]]:
        seen.add("open")
        yield {"client": "api"}
        seen.add("closed")

    loop: Any = app.handler("loop")(_async(lambda: seen.add(jobq.current().state)))
    thread: Any = app.handler("thread")(lambda: seen.add(jobq.current().state))

    async with bench.working(app):
        for handler in (loop, thread):
            await bench.until(bench.enqueue(handler))
        assert seen.seen == ["open", {"client": "api"}, {"client": "api"}]

    assert seen.seen[-1] == "closed"


async def test_a_lifespan_that_raises_ends_the_run(bench: Bench, app: jobq.App) -> None:
    @app.lifespan
    async def clients() -> AsyncIterator[None]:
        raise OSError("no api key")
        yield

    with pytest.raises(OSError, match="no api key"):
        await jobq.Worker(app, bench.url).run()
    assert bench.workers() == []


async def test_current_tells_the_job_and_is_an_error_outside_of_one(bench: Bench, app: jobq.App) -> None:
    seen = Effects()

    @app.handler("k", queue="q", max_attempts=7)
    async def handler() -> None:
        seen.add(jobq.current())

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler.options(priority=2)))

    told = seen.seen[0].job
    assert (told.id, told.kind, told.queue, told.priority) == (job.id, "k", "q", 2)
    assert (told.attempt, told.failures, told.max_attempts, told.is_last) == (1, 0, 7, False)
    assert (told.run_at, told.created_at) == (job.run_at, job.created_at)
    with pytest.raises(jobq.ContextError, match="no job is running here"):
        jobq.current()


async def test_jobs_do_not_see_each_others_context(bench: Bench, app: jobq.App) -> None:
    seen, gate = Effects(), Gate()

    @app.handler("k")
    async def handler() -> None:
        before = jobq.current().job.id
        await gate.pass_()
        seen.add((before, jobq.current().job.id))

    async with bench.working(app, concurrency=4):
        ids = bench.enqueue_many(handler, 4)
        await gate.until_waiting(4)
        gate.open()
        await seen.until(4)

    assert sorted(seen.seen) == [(id_, id_) for id_ in ids]


async def test_on_error_hears_of_each_failed_attempt_once(bench: Bench, app: jobq.App) -> None:
    events = Effects()
    app.on_error(events.add)
    error = ValueError("no")

    @app.handler("k", max_attempts=2, retry=lambda failures, error: timedelta(0))
    async def handler() -> None:
        raise error

    ended: Any = app.handler("ended")(lambda: "fine")
    async with bench.working(app):
        id_ = bench.enqueue(handler)
        await bench.until(id_)
        await bench.until(bench.enqueue(ended))

    assert [(event.job.id, event.error, event.attempt, event.final) for event in events.seen] == [
        (id_, error, 1, False),
        (id_, error, 2, True),
    ]


async def test_on_error_does_not_hear_of_snoozes_and_shutdowns(bench: Bench, app: jobq.App) -> None:
    events, gate = Effects(), Gate()
    app.on_error(events.add)

    @app.handler("snooze")
    async def snooze() -> None:
        raise jobq.Snooze(timedelta(hours=1))

    long: list[Any] = [app.handler("loop")(gate.pass_), app.handler("thread")(gate.pass_in_thread)]
    async with bench.working(app) as worker:
        await bench.until(bench.enqueue(snooze), State.PENDING, attempt=1)
        for handler in long:
            bench.enqueue(handler)
        await gate.until_waiting(2)
        worker.stop(now=True)

    gate.open()
    assert events.seen == []


async def test_a_callback_that_raises_changes_nothing(bench: Bench, app: jobq.App) -> None:
    events = Effects()
    app.on_error(lambda event: 1 / 0)
    app.on_error(lambda event: sys.exit(3))
    app.on_error(events.add)
    handler: Any = app.handler("k", max_attempts=1)(lambda: 1 / 0)

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler))

    assert job.state is State.DEAD
    assert len(events) == 1
