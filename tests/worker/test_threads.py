"""How many handlers run in threads at a time, what waits for one, and what becomes of those that cannot be stopped."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import anyio
import pytest
from bench import NEVER, Bench, Effects, Gate, Run, assembly_of, eventually, unwrapped

import jobq
from jobq import State

pytestmark = pytest.mark.anyio
SHORT = timedelta(milliseconds=50)


class Busy:
    """Handlers that count how many of them run at a time, and wait for the gate."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.now = self.most = 0

    def __call__(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        self.gate.pass_in_thread()
        self.now -= 1


async def test_no_more_handlers_run_in_threads_than_the_worker_may_have_and_none_is_claimed_to_wait(
    bench: Bench, app: jobq.App
) -> None:
    busy = Busy()
    app.handler("busy")(busy.__call__)
    ids = [bench.add("busy") for _ in range(6)]

    async with bench.working(app, threads=2, concurrency=10) as first:
        await busy.gate.until_waiting(2)
        async with bench.working(app, threads=3, concurrency=10) as second:
            await busy.gate.until_waiting(5)
            assert (first.stats().held, second.stats().held) == (2, 3)
            busy.gate.open()
            await bench.until_all_ended()

    assert busy.most == 5
    assert {bench.job(id_).attempt for id_ in ids} == {1}


async def test_async_handlers_go_on_while_every_thread_is_taken(bench: Bench, app: jobq.App) -> None:
    busy = Busy()
    app.handler("busy")(busy.__call__)

    @app.handler("quick")
    async def quick() -> None: ...

    waiting = [bench.add("busy") for _ in range(5)]
    async with bench.working(app, threads=1, concurrency=3):
        await busy.gate.until_waiting(1)
        behind = [bench.enqueue(quick) for _ in range(5)]
        assert {(await bench.until(id_)).state for id_ in behind} == {State.DONE}
        assert [bench.job(id_).state for id_ in waiting].count(State.RUNNING) == 1
        busy.gate.open()
        await bench.until_all_ended()

    assert busy.most == 1


@pytest.mark.parametrize("fleet", [None, 5], ids=["plain queue", "limited queue"])
async def test_a_queues_threads_bound_its_jobs_in_one_worker_and_another_worker_takes_the_others(
    bench: Bench, app: jobq.App, fleet: int | None
) -> None:
    app.queue("images", threads=2, concurrency=fleet)
    busy = Busy()
    app.handler("busy", queue="images")(busy.__call__)
    app.handler("other")(lambda: None)
    ids = [bench.add("busy", queue="images") for _ in range(6)]

    async with bench.working(app, concurrency=10) as first:
        await busy.gate.until_waiting(2)
        await bench.until(bench.add("other"))
        assert first.stats().running == 2
        async with bench.working(app, concurrency=10) as second:
            await busy.gate.until_waiting(4)
            assert (first.stats().running, second.stats().running) == (2, 2)
            busy.gate.open()
            await bench.until_all_ended()

    assert busy.most == 4
    assert {bench.job(id_).attempt for id_ in ids} == {1}


async def test_a_freed_thread_is_given_to_the_next_job_at_once(bench: Bench, app: jobq.App) -> None:
    app.queue("images", threads=1)
    seen = Effects()
    app.handler("quick", queue="images")(lambda: seen.add("ran"))
    with bench.connect() as connection:
        jobq.enqueue_many(connection, app.handlers["quick"], [{}] * 30)

    async with bench.working(app, poll_interval=NEVER):  # only the end of a job can make it look again in time
        await seen.until(30)


async def test_a_job_that_waits_for_a_thread_has_its_whole_timeout_before_it(bench: Bench, app: jobq.App) -> None:
    app.queue("images", threads=1)
    busy = Busy()
    app.handler("busy", queue="images", priority=0)(busy.__call__)
    app.handler("next", queue="images", timeout=timedelta(hours=1))(lambda: None)
    bench.add("busy", queue="images", priority=0)
    waiting = bench.add("next", queue="images", priority=1)  # of another lane: claimed together with the first one

    async with bench.working(app) as worker:
        await busy.gate.until_waiting()
        held = await eventually(lambda: assembly_of(worker).held.get(waiting), "its claim")
        await eventually(lambda: held.waits, "its wait for a thread")  # the other one may run a turn of the loop before
        assert held.deadline is None
        busy.gate.open()
        assert (await bench.until(waiting)).state is State.DONE

    assert busy.most == 1


async def test_a_handler_that_checks_is_told_to_stop_and_nothing_but_the_timeout_is_recorded(
    bench: Bench, app: jobq.App
) -> None:
    seen = Effects()

    @app.handler("k", timeout=SHORT, max_attempts=1)
    def handler() -> None:
        gate = Gate()
        try:
            while True:
                jobq.current().check()
                gate.wait_in_thread(0.005)
        except jobq.StoppedError as error:
            seen.add(str(error))
            raise

    async with bench.working(app) as worker:
        id_ = bench.enqueue(handler)
        job = await bench.until(id_)
        assert worker.stats().left_behind == 0

    assert (job.state, [one.error for one in job.errors]) == (State.DEAD, ["TimeoutError"])
    assert seen.seen == [f"job {id_} (k) was told to stop: this attempt counts no more"]


async def test_check_says_nothing_while_the_job_may_run(bench: Bench, app: jobq.App) -> None:
    @app.handler("k")
    async def handler() -> str:
        jobq.current().check()
        return "fine"

    async with bench.working(app):
        assert (await bench.until(bench.enqueue(handler))).outcome == "ok: fine"


async def test_left_behind_handlers_are_counted_where_people_look(bench: Bench, app: jobq.App) -> None:
    gate = Gate()
    stuck: Any = app.handler("stuck", timeout=SHORT, max_attempts=1)(gate.pass_in_thread)

    async with bench.working(app, lease=timedelta(seconds=1)) as worker:
        await bench.until(bench.enqueue(stuck))
        with bench.connect() as connection:
            await eventually(lambda: jobq.workers(connection)[0].left_behind == 1, "a beat that tells")
            assert jobq.stats(connection).left_behind == 1
        gate.open()
        await eventually(lambda: not worker.stats().left_behind, "the end of the handler")
        with bench.connect() as connection:
            await eventually(lambda: jobq.workers(connection)[0].left_behind == 0, "a beat that tells")


@pytest.mark.parametrize("where", ["thread", "loop"])
async def test_with_one_left_behind_too_many_the_worker_drains_and_ends_with_70(
    bench: Bench, app: jobq.App, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    gate, good = Gate(), Gate()

    def in_thread() -> None:
        gate.pass_in_thread()

    async def in_loop() -> None:
        while gate.is_shut:
            try:
                await gate.pass_()
            except BaseException:
                continue

    app.handler("stuck", timeout=SHORT, max_attempts=1)(in_thread if where == "thread" else in_loop)
    app.handler("good")(good.pass_)
    with bench.connect() as connection:
        beside = jobq.enqueue(connection, app.handlers["good"]).id
        stuck = [one.id for one in jobq.enqueue_many(connection, app.handlers["stuck"], [{}, {}])]
    run = Run(jobq.Worker(app, bench.url, concurrency=3, max_left_behind=1, poll_interval=SHORT))

    with unwrapped():
        async with anyio.create_task_group() as group:
            await group.start(run)
            await eventually(lambda: "more than max_left_behind (1)" in caplog.text, "the word that it ends")
            assert not run.worker.is_ready
            later = bench.add("good")
            good.open()
            gate.open()  # they end after all: the code is the same
            code = await run.end()

    assert code == 70
    assert bench.job(beside).state is State.DONE
    assert {bench.job(id_).state for id_ in stuck} == {State.DEAD}
    assert bench.job(later).state is State.PENDING


async def test_a_worker_whose_threads_are_all_left_behind_ends_instead_of_waiting_for_ever(
    bench: Bench, app: jobq.App
) -> None:
    gate = Gate()
    stuck: Any = app.handler("stuck", timeout=SHORT, max_attempts=1)(gate.pass_in_thread)
    bench.enqueue(stuck)
    later = bench.enqueue(stuck)
    run = Run(jobq.Worker(app, bench.url, threads=1, poll_interval=SHORT, grace=timedelta(0)))

    with unwrapped():
        async with anyio.create_task_group() as group:
            await group.start(run)
            assert await run.end() == 70

    assert (bench.job(later).state, bench.job(later).failures) == (State.PENDING, 0)
    gate.open()
