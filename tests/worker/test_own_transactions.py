"""`jobq.current().transaction()`: the work and the job's completion are kept together or not at all."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from bench import HOUR, Bench, Effects, Gate, eventually
from own_transactions import both, kept, register

import jobq
from jobq import State

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(bench: Bench) -> Bench:
    bench.execute("CREATE TABLE effects (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    return bench


def fail(*_: Any) -> Any:
    raise ValueError("no")


@both
async def test_the_work_and_the_completion_commit_together(bench: Bench, app: jobq.App, where: str) -> None:
    handler = register(app, where)

    async with bench.working(app) as worker:
        job = await bench.until(bench.enqueue(handler))
        await eventually(lambda: worker.stats().ok == 1, "the count")

    assert (job.state, job.outcome, kept(bench)) == (State.DONE, None, 1)


async def test_a_job_enqueued_inside_belongs_to_the_transaction(bench: Bench, app: jobq.App) -> None:
    next_: Any = app.handler("next", queue="other")(lambda: None)

    @app.handler("k", max_attempts=1)
    async def handler(fails: bool) -> None:
        async with jobq.current().transaction() as session:
            await jobq.enqueue_async(session, next_)
            if fails:
                raise ValueError("no")

    async with bench.working(app, queues=["default"]):
        assert (await bench.until(bench.enqueue(handler, fails=True))).state is State.DEAD
        assert bench.execute("SELECT count(*) FROM jobq.jobs")[0][0] == 0
        assert (await bench.until(bench.enqueue(handler, fails=False))).state is State.DONE
        assert bench.execute("SELECT count(*) FROM jobq.jobs")[0][0] == 1


@both
async def test_an_exception_inside_rolls_back_and_is_retried(bench: Bench, app: jobq.App, where: str) -> None:
    handler = register(app, where, inside=fail)

    async with bench.working(app):
        job = await bench.until_retried(bench.enqueue(handler))

    assert (job.failures, job.errors[0].error, kept(bench)) == (1, "ValueError", 0)


@both
async def test_a_commit_that_the_server_refuses_is_a_failed_attempt(bench: Bench, app: jobq.App, where: str) -> None:
    bench.execute("INSERT INTO effects VALUES (1)")
    handler = register(app, where)

    async with bench.working(app):
        job = await bench.until_retried(bench.enqueue(handler))

    assert (job.failures, job.errors[0].error, kept(bench)) == (1, "sqlalchemy.exc.IntegrityError", 1)


@both
@pytest.mark.parametrize("theft", [{"attempt": 99}, {"worker_id": 5}], ids=["attempt", "worker"])
async def test_a_job_taken_meanwhile_takes_the_work_back(
    bench: Bench, app: jobq.App, where: str, theft: dict[str, int]
) -> None:
    bench.add_worker(5, HOUR, ran_out=-HOUR)

    def steal(_: Any) -> None:
        bench.change(jobq.current().job.id, **theft)

    handler = register(app, where, inside=steal)
    events = Effects()
    app.on_error(events.add)

    async with bench.working(app) as worker:
        id_ = bench.enqueue(handler)
        await eventually(lambda: worker.stats().refused == 1, "a refused write")
        (event,) = events.seen
        assert isinstance(event.error, jobq.LeaseLostError)
        job = bench.job(id_)
        assert (job.state, job.failures, job.errors, kept(bench)) == (State.RUNNING, 0, (), 0)
        assert {"attempt": job.attempt, "worker_id": job.worker_id}.items() >= theft.items()


async def test_the_wrong_form_is_an_error_that_names_the_right_one(bench: Bench, app: jobq.App) -> None:
    @app.handler("loop", max_attempts=1)
    async def loop() -> None:
        with jobq.current().transaction():
            pass

    @app.handler("thread", max_attempts=1)
    def thread() -> None:
        jobq.current().transaction().__aenter__().send(None)

    async with bench.working(app):
        in_loop, in_thread = [await bench.until(bench.enqueue(handler)) for handler in (loop, thread)]

    assert in_loop.outcome is not None
    assert in_thread.outcome is not None
    assert "ContextError: an event loop runs here: use `async with" in in_loop.outcome
    assert "ContextError: no event loop runs here: use `with" in in_thread.outcome


async def test_a_plain_handler_with_a_loop_of_its_own_uses_the_async_form(bench: Bench, app: jobq.App) -> None:
    async def work() -> None:
        async with jobq.current().transaction() as session:
            await session.execute(sa.text("SELECT 1"))

    loop: Any = app.handler("loop")(work)
    thread: Any = app.handler("thread")(lambda: asyncio.run(work()))

    async with bench.working(app, concurrency=1):
        for handler in (thread, loop, thread, thread, loop):
            assert (await bench.until(bench.enqueue(handler))).outcome is None


@both
async def test_a_second_transaction_in_one_attempt_is_refused(bench: Bench, app: jobq.App, where: str) -> None:
    events = Effects()
    app.on_error(events.add)

    async def in_the_loop() -> None:
        for _ in range(2):
            async with jobq.current().transaction():
                pass

    def in_a_thread() -> None:
        for _ in range(2):
            with jobq.current().transaction():
                pass

    function: Any = in_the_loop if where == "loop" else in_a_thread
    handler: Any = app.handler("k")(function)
    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler))
        await events.until(1)

    assert job.state is State.DONE
    assert isinstance(events.seen[0].error, jobq.ContextError)
    assert "once" in str(events.seen[0].error)


@both
@pytest.mark.parametrize(
    ("value", "outcome"), [("sent", "ok: sent"), (jobq.Skip("fresh"), "skip: fresh"), (None, None)], ids=str
)
async def test_what_is_returned_afterwards_is_written_to_the_finished_job(
    bench: Bench, app: jobq.App, where: str, value: Any, outcome: str | None
) -> None:
    handler = register(app, where, after=lambda: value)

    async with bench.working(app) as worker:
        id_ = bench.enqueue(handler)
        await eventually(lambda: worker.stats().ok + worker.stats().skip == 1, "the count")

    assert (bench.job(id_).state, bench.job(id_).outcome) == (State.DONE, outcome)


@both
async def test_what_is_raised_afterwards_is_reported_and_not_retried(bench: Bench, app: jobq.App, where: str) -> None:
    events = Effects()
    app.on_error(events.add)
    handler = register(app, where, after=fail)

    async with bench.working(app):
        id_ = bench.enqueue(handler)
        await events.until(1)

    job = bench.job(id_)
    assert (job.state, job.failures, job.errors, kept(bench)) == (State.DONE, 0, (), 1)
    assert [(type(event.error), event.final) for event in events.seen] == [(ValueError, True)]


async def test_a_timeout_afterwards_is_reported_as_one(bench: Bench, app: jobq.App) -> None:
    events = Effects()
    app.on_error(events.add)

    @app.handler("k", timeout=timedelta(seconds=2))  # it connects first, on a machine that is busy
    async def handler() -> None:
        async with jobq.current().transaction():
            pass
        await anyio.sleep_forever()

    async with bench.working(app):
        id_ = bench.enqueue(handler)
        await events.until(1)

    assert (bench.job(id_).state, type(events.seen[0].error)) == (State.DONE, TimeoutError)


async def test_a_shutdown_afterwards_is_no_error(bench: Bench, app: jobq.App) -> None:
    events, gate = Effects(), Gate()
    app.on_error(events.add)

    @app.handler("k")
    async def handler() -> None:
        async with jobq.current().transaction():
            pass
        await gate.pass_()

    async with bench.working(app) as worker:
        id_ = bench.enqueue(handler)
        await gate.until_waiting()
        worker.stop(now=True)

    assert (bench.job(id_).state, events.seen) == (State.DONE, [])
    assert (worker.stats().held, worker.stats().given_back) == (0, 0)


@both
async def test_the_transaction_has_the_servers_own_settings(bench: Bench, app: jobq.App, where: str) -> None:
    seen = Effects()
    shown = sa.text(
        "SELECT current_setting('enable_seqscan'), current_setting('statement_timeout'),"
        " current_setting('application_name')"
    )

    async def in_the_loop() -> None:
        async with jobq.current().transaction() as session:
            seen.add(tuple((await session.execute(shown)).one()))

    def in_a_thread() -> None:
        with jobq.current().transaction() as session:
            seen.add(tuple(session.execute(shown).one()))

    function: Any = in_the_loop if where == "loop" else in_a_thread
    handler: Any = app.handler("k")(function)
    async with bench.working(app, name="w1"):
        await bench.until(bench.enqueue(handler))

    assert seen.seen == [("on", "0", "jobq w1 handlers")]
