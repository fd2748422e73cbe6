"""How a worker ends: what runs may end, the rest is given back, and nothing is left behind."""

from __future__ import annotations

import gc
import os
import threading
from datetime import timedelta
from typing import Any

import anyio
import pytest
from bench import PATIENCE_SECONDS, Bench, Effects, Gate, Run, assembly_of, eventually

import jobq
from jobq import State
from jobq.worker.surveyor import Surveyor

pytestmark = pytest.mark.anyio

NO_GRACE = timedelta(0)
A_SECOND = 1.0


async def test_what_runs_may_end_within_the_grace_and_nothing_more_is_claimed(bench: Bench, app: jobq.App) -> None:
    gate = Gate()
    handlers: list[Any] = [app.handler("loop")(gate.pass_), app.handler("thread")(gate.pass_in_thread)]
    running = [bench.enqueue(handler) for handler in handlers]
    run = Run(jobq.Worker(app, bench.url, poll_interval=timedelta(milliseconds=20)))

    async with anyio.create_task_group() as group:
        await group.start(run)
        await gate.until_waiting(2)
        run.worker.stop()
        late = bench.enqueue(handlers[0])
        claims = run.worker.stats().claims
        await anyio.lowlevel.checkpoint()
        gate.open()
        assert await run.end() == 0

    assert [bench.job(id_).state for id_ in running] == [State.DONE, State.DONE]
    assert bench.job(late).attempt == 0
    assert run.worker.stats().claims <= claims + 1
    assert bench.workers() == []


async def test_after_the_grace_another_worker_has_the_jobs_within_a_second(bench: Bench, app: jobq.App) -> None:
    gate, seen = Gate(), Effects()

    @app.handler("k")
    async def handler() -> None:
        seen.add(jobq.current().job)
        await gate.pass_()

    bench.enqueue_many(handler, 10)
    async with bench.working(app, concurrency=10, grace=timedelta(milliseconds=100)) as first:
        await seen.until(10)
        async with bench.working(app, concurrency=10, poll_interval=timedelta(seconds=30)):
            await bench.until_listening(2)
            first.stop()
            await eventually(lambda: len(bench.workers()) == 1, "the first worker's leave")
            await eventually(lambda: len(seen) >= 20, "ten starts", within=A_SECOND)
            gate.open()
            states = await bench.until_all_ended()

    assert set(states.values()) == {State.DONE}
    assert [(job.attempt, job.failures) for job in seen.seen] == [(1, 0)] * 10 + [(2, 0)] * 10
    assert first.stats().given_back == 10


async def test_a_busy_worker_hears_of_jobs_given_back_while_its_claim_is_in_flight(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notification comes while a claim is on its way that has not seen the job: the cursor may not pass it."""
    app.handler("k")(lambda: None)
    old = timedelta(minutes=10)
    async with bench.working(app, poll_interval=timedelta(seconds=30)) as worker:
        await bench.until_listening()
        await bench.until(bench.add("k"))
        database = assembly_of(worker).database
        run, id_ = database.run, 0

        async def held_up(function: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal id_
            result = await run(function, *args, **kwargs)
            if function.__name__ == "claim" and not id_:
                id_ = bench.execute(
                    "INSERT INTO jobq.jobs (kind, run_at) VALUES ('k', now() - :old) RETURNING id,"
                    " pg_notify('jobq', 'default|1|' || extract(epoch FROM run_at)::numeric(20, 6))::text",
                    old=old,
                )[0][0]
                told = assembly_of(worker).claimer
                await eventually(lambda: told._is_told, "the notification")
            return result

        monkeypatch.setattr(database, "run", held_up)
        bench.execute("SELECT pg_notify('jobq', 'default|1|' || extract(epoch FROM now())::numeric(20, 6))")
        await eventually(lambda: id_, "a claim")
        with anyio.fail_after(A_SECOND):
            await bench.until(id_)


@pytest.mark.parametrize("before", [False, True], ids=["at_once", "after_a_first_word"])
async def test_told_to_hurry_a_worker_gives_back_without_the_grace(bench: Bench, app: jobq.App, before: bool) -> None:
    gate = Gate()
    handler: Any = app.handler("k")(gate.pass_)
    ids = bench.enqueue_many(handler, 3)
    run = Run(jobq.Worker(app, bench.url, grace=timedelta(hours=1)))

    async with anyio.create_task_group() as group:
        await group.start(run)
        await gate.until_waiting(3)
        if before:
            run.worker.stop()
            await anyio.lowlevel.checkpoint()
        run.worker.stop(now=True)
        assert await run.end() == 0

    jobs = [bench.job(id_) for id_ in ids]
    assert [(job.state, job.attempt, job.failures, job.errors) for job in jobs] == [(State.PENDING, 1, 0, ())] * 3
    assert run.worker.stats().given_back == 3


@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_a_handler_that_cannot_be_stopped_is_left_behind_and_its_job_given_back(
    bench: Bench, app: jobq.App, where: str
) -> None:
    gate = Gate()

    async def swallow() -> None:
        while gate.is_shut:
            try:
                await gate.pass_()
            except BaseException:
                continue

    function: Any = swallow if where == "loop" else gate.pass_in_thread
    handler: Any = app.handler("k")(function)
    id_ = bench.enqueue(handler)
    run = Run(jobq.Worker(app, bench.url, grace=NO_GRACE))

    async with anyio.create_task_group() as group:
        await group.start(run)
        await gate.until_waiting()
        run.worker.stop()
        assert await run.end() == 70

    gate.open()
    assert (bench.job(id_).state, bench.job(id_).failures) == (State.PENDING, 0)
    assert run.worker.stats().left_behind == 1


async def test_a_thread_that_ends_when_told_is_not_left_behind_and_its_job_runs_again(
    bench: Bench, app: jobq.App
) -> None:
    seen, gate = Effects(), Gate()

    @app.handler("k")
    def handler() -> None:
        seen.add("begins")
        while not jobq.current().cancelled:
            gate.wait_in_thread(0.005)
        gate.wait_in_thread(0.2)  # its clean-up: longer than the worker takes to leave

    id_ = bench.enqueue(handler)
    run = Run(jobq.Worker(app, bench.url, grace=NO_GRACE))

    async with anyio.create_task_group() as group:
        await group.start(run)
        await seen.until(1)
        run.worker.stop()
        assert await run.end() == 0

    assert (bench.job(id_).state, bench.job(id_).failures) == (State.PENDING, 0)


async def test_a_service_that_fails_ends_the_run_and_gives_back_what_is_held(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, broken = Gate(), []
    handler: Any = app.handler("k")(gate.pass_)
    id_ = bench.enqueue(handler)

    survey = Surveyor.run_once

    async def run_once(self: Surveyor) -> None:
        if broken:
            raise RuntimeError("a bug of a service")
        await survey(self)

    monkeypatch.setattr("jobq.worker.surveyor.INTERVAL", timedelta(milliseconds=20))
    monkeypatch.setattr(Surveyor, "run_once", run_once)

    async def work() -> None:
        async with bench.working(app):
            await gate.until_waiting()
            broken.append(True)
            await anyio.sleep(PATIENCE_SECONDS)  # the run's end cancels it

    with pytest.raises(RuntimeError, match="a bug of a service"):
        await work()

    assert (bench.job(id_).state, bench.job(id_).failures, bench.workers()) == (State.PENDING, 0, [])


async def test_a_run_that_is_cancelled_from_outside_gives_back_what_is_held(bench: Bench, app: jobq.App) -> None:
    gate = Gate()
    handler: Any = app.handler("k")(gate.pass_)
    id_ = bench.enqueue(handler)

    async with anyio.create_task_group() as group:
        await group.start(jobq.Worker(app, bench.url).run)
        await gate.until_waiting()
        group.cancel_scope.cancel()

    assert (bench.job(id_).state, bench.job(id_).failures, bench.workers()) == (State.PENDING, 0, [])


async def test_nothing_is_left_of_workers_that_have_ended(bench: Bench, app: jobq.App) -> None:
    if bench.pooled_url:
        pytest.skip("a pooler keeps its connections to the server")
    handlers: list[Any] = [app.handler("loop")(_nothing), app.handler("thread")(lambda: None)]
    threads = set(threading.enumerate())

    async with bench.working(app):
        for handler in handlers:
            await bench.until(bench.enqueue(handler))

    ours = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'jobq%'"
    await eventually(lambda: not bench.execute(ours), "the end of its connections")
    await eventually(lambda: set(threading.enumerate()) <= threads, "the end of its threads")
    assert bench.workers() == []


async def _nothing() -> None: ...


async def test_workers_that_are_stopped_at_once_leave_no_connection_half_open(bench: Bench, app: jobq.App) -> None:
    """A connect that is cancelled keeps its socket until the collector comes, and the server waits for it a minute."""
    gc.disable()
    try:
        bench.workers()
        files = len(os.listdir("/proc/self/fd"))
        for _ in range(10):
            async with bench.working(app):
                pass
        await eventually(lambda: len(os.listdir("/proc/self/fd")) <= files + 1, "the end of all connections")
    finally:
        gc.enable()
