"""What a handler returns or raises, and what its job becomes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from bench import Bench

import jobq
from jobq import State

pytestmark = pytest.mark.anyio


def raising(error: BaseException) -> Callable[[], None]:
    def handler() -> None:
        raise error

    return handler


RETURNED = {
    "none": (None, None),
    "text": ("sent", "ok: sent"),
    "empty": ("", "ok"),
    "text_like_an_error": ("err: not one", "ok: err: not one"),
    "ok": (jobq.Ok("sent"), "ok: sent"),
    "fail": (jobq.Fail("no match"), "fail: no match"),
    "skip": (jobq.Skip("fresh"), "skip: fresh"),
    "skip_without_text": (jobq.Skip(), "skip"),
}


async def test_what_a_handler_returns_is_its_outcome(bench: Bench, app: jobq.App) -> None:
    def register(name: str, value: Any) -> list[jobq.Handler[Any, Any]]:
        async def in_the_loop():  # type: ignore[no-untyped-def]
            return value

        def in_a_thread():  # type: ignore[no-untyped-def]
            return value

        return [app.handler(f"{name}.loop")(in_the_loop), app.handler(f"{name}.thread")(in_a_thread)]

    ids = {
        bench.enqueue(handler): outcome
        for name, (value, outcome) in RETURNED.items()
        for handler in register(name, value)
    }

    async with bench.working(app) as worker:
        await bench.until_all_ended()

    ended = {id_: bench.job(id_) for id_ in ids}
    assert {id_: job.outcome for id_, job in ended.items()} == ids
    assert {job.state for job in ended.values()} == {State.DONE}
    assert {(job.attempt, job.failures, job.errors) for job in ended.values()} == {(1, 0, ())}
    stats = worker.stats()
    assert (stats.ok, stats.fail, stats.skip, stats.claimed) == (10, 2, 4, 16)


async def test_permanent_ends_the_job_at_once(bench: Bench, app: jobq.App) -> None:
    handler = app.handler("k", max_attempts=9)(raising(jobq.Permanent("no recipient")))

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler))

    assert (job.state, job.attempt, job.failures) == (State.DEAD, 1, 1)
    assert job.outcome == "err: jobq.outcomes.Permanent: no recipient"


async def test_a_subclass_of_permanent_is_permanent_and_keeps_its_name(bench: Bench, app: jobq.App) -> None:
    class NoRecipient(jobq.Permanent):
        pass

    handler = app.handler("k")(raising(NoRecipient("who?")))

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler))

    assert job.state is State.DEAD
    assert job.errors[0].error.endswith("NoRecipient")


async def test_snooze_makes_the_job_wait_and_costs_nothing(bench: Bench, app: jobq.App) -> None:
    handler = app.handler("k")(raising(jobq.Snooze(timedelta(hours=1))))

    async with bench.working(app) as worker:
        job = await bench.until(bench.enqueue(handler), State.PENDING, attempt=1)
        row = bench.execute("SELECT run_at - attempted_at AS away, worker_id FROM jobq.jobs")[0]

    assert (job.failures, job.errors, row.worker_id) == (0, (), None)
    assert timedelta(hours=1) <= row.away < timedelta(hours=1, seconds=10)
    assert worker.stats().snooze == 1


@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_a_value_that_is_no_outcome_is_an_error_that_no_retry_mends(
    bench: Bench, app: jobq.App, where: str
) -> None:
    async def in_the_loop():  # type: ignore[no-untyped-def]
        return 42

    def in_a_thread():  # type: ignore[no-untyped-def]
        return {"sent": True}

    handler: Any = app.handler("k")(in_the_loop if where == "loop" else in_a_thread)

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler))

    assert (job.state, job.attempt) == (State.DEAD, 1)
    assert "returns None, a str or an Outcome" in job.errors[0].message


async def test_an_awaitable_from_a_plain_handler_is_closed_and_said(bench: Bench, app: jobq.App) -> None:
    async def forgotten() -> None:
        await anyio.lowlevel.checkpoint()

    @app.handler("k")
    def handler():  # type: ignore[no-untyped-def]
        return forgotten()  # the warning "never awaited" would be an error here

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler))

    assert job.state is State.DEAD
    assert "returned an awaitable, not its value: await it, in an async def" in job.errors[0].message


async def test_a_callable_object_that_awaits_runs_in_the_loop(bench: Bench, app: jobq.App) -> None:
    class Sender:
        async def __call__(self, to: str) -> str:
            await anyio.lowlevel.checkpoint()
            return f"to {to}"

    handler = app.handler("k")(Sender())

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler, to="a@b.c"))

    assert job.outcome == "ok: to a@b.c"


async def test_a_long_text_is_kept_bounded(bench: Bench, app: jobq.App) -> None:
    @app.handler("k")
    def handler() -> str:
        return "x" * 100_000

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler))

    assert job.outcome is not None
    assert len(job.outcome) < 2_200
    assert "characters left out" in job.outcome
