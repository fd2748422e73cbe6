"""Queues of one job at a time, in order, and of so many at a time: in the whole fleet, whatever happens to workers."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from bench import HOUR, NEVER, Bench, Gate, more_claims
from limited_queues import Running, taken

import jobq
from jobq import State
from jobq.tables import jobs

pytestmark = pytest.mark.anyio
SOON = timedelta(milliseconds=20)


async def test_a_fifo_queue_runs_one_job_at_a_time_in_order_on_several_workers(bench: Bench, app: jobq.App) -> None:
    running = Running()
    app.queue("q", fifo=True)

    @app.handler("k", queue="q")
    async def handler(n: int) -> None:
        queue = running.begin(n)
        await anyio.sleep(0.001)
        running.end(queue)

    for n in range(60):
        bench.enqueue(handler, n)
    async with AsyncExitStack() as stack:
        for _ in range(3):
            await stack.enter_async_context(bench.working(app))
        states = await bench.until_all_ended()

    assert set(states.values()) == {State.DONE}
    assert running.starts_of("q") == list(range(60))
    assert running.most["q"] == 1
    assert taken(bench) == {"q": 0}


async def test_a_retried_job_keeps_its_place_and_the_others_wait_for_it(bench: Bench, app: jobq.App) -> None:
    running = Running()
    app.queue("q", fifo=True)

    @app.handler("k", queue="q", retry=lambda failures, error: SOON)
    async def handler(n: int) -> None:
        running.end(running.begin(n))
        if n == 0 and jobq.current().job.failures < 2:
            raise ValueError("not yet")

    first, *others = [bench.enqueue(handler, n) for n in range(4)]
    before = bench.job(first).run_at
    async with bench.working(app), bench.working(app):
        await bench.until(others[-1])

    assert running.starts_of("q") == [0, 0, 0, 1, 2, 3]
    assert bench.job(first).run_at == before
    assert bench.job(first).failures == 2


async def test_a_backoff_holds_up_its_own_queue_alone(bench: Bench, app: jobq.App) -> None:
    running = Running()
    app.queue("held", fifo=True)
    app.queue("free", fifo=True)

    @app.handler("k", queue="held", retry=lambda failures, error: HOUR)
    async def handler(n: int) -> None:
        if running.begin(n) == "held":
            raise ValueError("no")

    first = bench.enqueue(handler, 0)
    second = bench.enqueue(handler, 1)
    async with bench.working(app) as worker:
        await bench.until_retried(first)
        await bench.until(bench.enqueue(handler.options(queue="free"), 2))
        await more_claims(worker, 2)

    assert bench.job(second).attempt == 0
    waits = bench.execute("SELECT ready_at > now() + interval '59 minutes' FROM jobq.slots WHERE queue = 'held'")
    assert waits[0][0]


async def test_a_snoozed_job_is_passed_by_later_ones(bench: Bench, app: jobq.App) -> None:
    running = Running()
    app.queue("q", fifo=True)

    @app.handler("k", queue="q")
    async def handler(n: int) -> None:
        running.end(running.begin(n))
        if n == 0:
            raise jobq.Snooze(HOUR)

    first, second = bench.enqueue(handler, 0), bench.enqueue(handler, 1)
    async with bench.working(app):
        await bench.until(second)

    assert running.starts_of("q") == [0, 1]
    assert bench.job(first).state is State.PENDING


async def test_a_locked_head_is_not_passed_and_holds_no_other_queue_up(bench: Bench, app: jobq.App) -> None:
    running = Running()
    for queue in ("q", "other"):
        app.queue(queue, fifo=True)

    @app.handler("k", queue="q")
    async def handler(n: int) -> None:
        running.end(running.begin(n))

    first, second = bench.enqueue(handler, 0), bench.enqueue(handler, 1)
    with bench.engine.connect() as connection:
        connection.execute(sa.select(jobs.c.id).where(jobs.c.id == first).with_for_update())
        async with bench.working(app) as worker:
            await bench.until(bench.enqueue(handler.options(queue="other"), 2))
            await more_claims(worker, 3)
            assert running.starts_of("q") == []
            connection.rollback()
            await bench.until(second)

    assert running.starts_of("q") == [0, 1]


async def test_a_head_of_a_kind_that_a_worker_lacks_waits_for_one_that_knows_it(bench: Bench, app: jobq.App) -> None:
    running = Running()
    app.queue("q", fifo=True)

    @app.handler("known", queue="q")
    async def handler(n: int) -> None:
        running.end(running.begin(n))

    other = jobq.App()
    other.queue("q", fifo=True)
    other.handler("rare", queue="q")(lambda: running.end(running.begin(0)))
    first = bench.add("rare", queue="q")
    second = bench.enqueue(handler, 1)
    async with bench.working(app) as worker:
        await more_claims(worker, 3)
        assert bench.job(second).attempt == 0
        async with bench.working(other):
            await bench.until(second)

    assert bench.job(first).state is State.DONE
    assert running.starts_of("q") == [0, 1]


async def test_smaller_priorities_come_first_also_in_a_fifo_queue(bench: Bench, app: jobq.App) -> None:
    running = Running()
    app.queue("q", fifo=True)

    @app.handler("k", queue="q")
    async def handler(n: int) -> None:
        running.end(running.begin(n))

    for priority in (2, 0, 3, 1, 0):
        options: Any = {"priority": priority}
        bench.enqueue(handler.options(**options), priority)
    async with bench.working(app):
        await bench.until_all_ended()

    assert running.starts_of("q") == [0, 0, 1, 2, 3]


async def test_so_many_jobs_of_a_queue_run_at_a_time_in_the_fleet_and_no_more(bench: Bench, app: jobq.App) -> None:
    running, gate = Running(), Gate()
    app.queue("q", concurrency=3)

    @app.handler("k", queue="q")
    async def handler(n: int) -> None:
        queue = running.begin(n)
        await gate.pass_()
        running.end(queue)

    for n in range(30):
        bench.enqueue(handler, n)
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(bench.working(app)) for _ in range(3)]
        await gate.until_waiting(3)
        for worker in workers:
            await more_claims(worker, 2)
        assert gate.waiting == 3
        gate.open()
        await bench.until_all_ended()

    assert running.most["q"] == 3
    assert sorted(running.starts_of("q")) == list(range(30))
    assert taken(bench) == {"q": 0}


async def test_a_failed_job_of_a_queue_that_is_not_fifo_waits_by_itself(bench: Bench, app: jobq.App) -> None:
    app.queue("q", concurrency=1)

    @app.handler("k", queue="q", retry=lambda failures, error: HOUR)
    async def handler(fails: bool) -> None:
        if fails:
            raise ValueError("no")

    first, second = bench.enqueue(handler, True), bench.enqueue(handler, False)
    async with bench.working(app):
        await bench.until(second)

    job = bench.job(first)
    assert (job.state, job.failures) == (State.PENDING, 1)
    assert job.run_at > bench.job(second).run_at + HOUR / 2


async def test_forty_fifo_queues_share_one_worker_and_its_few_connections(bench: Bench, app: jobq.App) -> None:
    running = Running()
    names = [f"q{n:02}" for n in range(40)]
    for name in names:
        app.queue(name, fifo=True)

    @app.handler("k")
    async def handler(n: int) -> None:
        queue = running.begin(n)
        await anyio.sleep(0.001)
        running.end(queue)

    with bench.connect() as connection:
        for n in range(5):
            for name in names:
                jobq.enqueue(connection, handler.options(queue=name), n)
    async with bench.working(app, concurrency=50):
        await bench.until_all_ended()
        connections = bench.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE 'jobq %'"
        )

    assert connections[0][0] <= 6
    assert {name: running.starts_of(name) for name in names} == {name: [0, 1, 2, 3, 4] for name in names}
    assert set(running.most.values()) == {1}


async def test_a_notification_starts_a_job_of_a_limited_queue_at_once(bench: Bench, app: jobq.App) -> None:
    app.queue("q", fifo=True)
    handler: Any = app.handler("k", queue="q")(lambda: None)

    async with bench.working(app, poll_interval=NEVER):
        await bench.until_listening()
        ids = [bench.enqueue(handler) for _ in range(3)]
        await bench.until(ids[-1])


async def test_a_queue_may_give_its_handlers_a_timeout(bench: Bench, app: jobq.App) -> None:
    app.queue("q", timeout=timedelta(milliseconds=50))

    @app.handler("k", queue="q", max_attempts=1)
    async def handler() -> None:
        await anyio.sleep(60)

    @app.handler("own", queue="q", max_attempts=1, timeout=HOUR)
    async def own() -> None:
        await anyio.sleep(0.1)

    first, second = bench.enqueue(handler), bench.enqueue(own)
    async with bench.working(app):
        assert (await bench.until(first)).outcome == "err: TimeoutError: took longer than its timeout of 0:00:00.050000"
        assert (await bench.until(second)).state is State.DONE


async def test_limited_and_other_queues_share_a_worker(bench: Bench, app: jobq.App) -> None:
    running = Running()
    for n in range(8):
        app.queue(f"q{n}", fifo=True)

    @app.handler("k")
    async def handler(n: int) -> None:
        running.end(running.begin(n))

    with bench.connect() as connection:
        for n in range(100):
            jobq.enqueue(connection, handler.options(queue="flood"), n)
            jobq.enqueue(connection, handler.options(queue=f"q{n % 8}"), n)
    async with bench.working(app, concurrency=2):
        await bench.until_all_ended()

    order = [queue == "flood" for queue, _ in running.starts]
    assert 0 < sum(order[:60]) < 60
