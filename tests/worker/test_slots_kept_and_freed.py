"""The slot of a limited queue is kept for as long as its handler runs, and freed once, whatever is lost."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest
from bench import NEVER, Bench, Gate, assembly_of, break_statements, eventually, more_claims
from limited_queues import Running, taken

import jobq
from jobq import State

pytestmark = pytest.mark.anyio
SOON = timedelta(milliseconds=20)


async def test_a_slot_is_kept_until_a_thread_that_was_left_behind_has_ended(bench: Bench, app: jobq.App) -> None:
    running, gate = Running(), Gate()
    app.queue("q", fifo=True)

    @app.handler("k", queue="q", timeout=timedelta(milliseconds=50), max_attempts=1)
    def handler(n: int) -> None:
        queue = running.begin(n)
        if n == 0:
            gate.pass_in_thread()
        running.end(queue)

    first, second = bench.enqueue(handler, 0), bench.enqueue(handler, 1)
    async with bench.working(app) as worker:
        assert (await bench.until(first)).state is State.DEAD
        await more_claims(worker, 3)
        assert running.starts_of("q") == [0]
        gate.open()
        await bench.until(second)

    assert running.most["q"] == 1
    assert taken(bench) == {"q": 0}


async def test_a_job_cancelled_while_it_runs_keeps_its_slot_until_its_handler_has_ended(
    bench: Bench, app: jobq.App
) -> None:
    running, gate = Running(), Gate()
    app.queue("q", fifo=True)

    @app.handler("k", queue="q")
    async def handler(n: int) -> None:
        queue = running.begin(n)
        try:
            if n == 0:
                await gate.pass_()
        finally:
            running.end(queue)

    first, second = bench.enqueue(handler, 0), bench.enqueue(handler, 1)
    async with bench.working(app, lease=timedelta(seconds=1.2)) as worker:
        await gate.until_waiting()
        with bench.connect() as connection:
            jobq.cancel(connection, first, running=True)
        assert taken(bench) == {"q": 1}
        await bench.until(second)
        assert worker.stats().lost == 1

    assert running.most["q"] == 1
    assert running.starts_of("q") == [0, 1]


async def test_a_claim_whose_answer_was_lost_leaves_no_slot_taken(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Running()
    app.queue("q", fifo=True)
    lost = iter([ConnectionError("the answer was lost")])

    @app.handler("k", queue="q")
    async def handler(n: int) -> None:
        running.end(running.begin(n))

    async with bench.working(app, poll_interval=NEVER) as worker:
        await bench.until_listening()  # the next claim is that of the first job
        database = assembly_of(worker).database
        break_statements(database, monkeypatch, lambda name: next(lost, None) if name == "claim_slots" else None)
        ids = [bench.enqueue(handler, n) for n in range(3)]
        await bench.until(ids[-1])

    assert running.starts_of("q") == [0, 1, 2]
    assert [bench.job(id_).failures for id_ in ids] == [0, 0, 0]


@pytest.mark.parametrize("statement", ["finish_limited", "put_back"])
async def test_an_end_whose_answer_was_lost_frees_its_slot_once(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    running = Running()
    app.queue("q", fifo=True)
    lost = iter([ConnectionError("the answer was lost")])

    @app.handler("k", queue="q", retry=lambda failures, error: SOON)
    async def handler(n: int) -> None:
        queue = running.begin(n)
        await anyio.sleep(0.01)
        running.end(queue)
        if n == 0 and jobq.current().job.failures == 0:
            raise ValueError("no")

    async with bench.working(app) as worker, bench.working(app):
        database = assembly_of(worker).database
        break_statements(database, monkeypatch, lambda name: next(lost, None) if name == statement else None)
        ids = [bench.enqueue(handler, n) for n in range(4)]
        await bench.until(ids[-1])

    assert running.starts_of("q") == [0, 0, 1, 2, 3]
    assert running.most["q"] == 1
    assert worker.stats().refused == 0


async def test_what_a_stopped_worker_gives_back_is_the_next_job_of_its_queue(bench: Bench, app: jobq.App) -> None:
    running, gate = Running(), Gate()
    app.queue("q", fifo=True)

    @app.handler("k", queue="q")
    async def handler(n: int) -> None:
        queue = running.begin(n)
        try:
            if jobq.current().job.attempt == 1 and n == 0:
                await gate.pass_()
        finally:
            running.end(queue)

    ids = [bench.enqueue(handler, n) for n in range(3)]
    async with bench.working(app, grace=timedelta(0)):
        await gate.until_waiting()
    assert taken(bench) == {"q": 0}
    async with bench.working(app):
        await bench.until(ids[-1])

    assert running.starts_of("q") == [0, 0, 1, 2]
    assert bench.job(ids[0]).failures == 0


async def test_a_job_that_completes_in_its_own_transaction_keeps_its_slot_until_its_handler_ends(
    bench: Bench, app: jobq.App
) -> None:
    running, gate = Running(), Gate()
    app.queue("q", fifo=True)

    @app.handler("k", queue="q")
    async def handler(n: int) -> str:
        queue = running.begin(n)
        async with jobq.current().transaction():
            pass
        if n == 0:
            await gate.pass_()
        running.end(queue)
        return "said"

    first, second = bench.enqueue(handler, 0), bench.enqueue(handler, 1)
    async with bench.working(app) as worker:
        await gate.until_waiting()
        assert bench.job(first).state is State.DONE
        await more_claims(worker, 3)
        assert running.starts_of("q") == [0]
        gate.open()
        await bench.until(second)
        await eventually(lambda: bench.job(second).outcome, "the text")

    assert running.most["q"] == 1
    await eventually(lambda: taken(bench) == {"q": 0}, "the slot being free")
