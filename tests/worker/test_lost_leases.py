"""Leases that are lost, and jobs that are taken away: what runs is stopped, and nothing of it is written."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
import sqlalchemy.exc as sa_exc
from bench import HOUR, TINY, Bench, Effects, Gate, assembly_of, eventually, more_claims

import jobq
from jobq import State
from jobq.store import leasing
from jobq.tables import workers

pytestmark = pytest.mark.anyio

BRIEF = timedelta(seconds=2)  # a lease: the heartbeat comes every third of a second
ANY_WHERE = pytest.mark.parametrize("where", ["loop", "thread"])


@pytest.fixture(autouse=True)
def _again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobq.worker.intake.STILL_RUNNING", timedelta(milliseconds=50))


class Stoppable:
    """A handler whose first attempt runs until it is told to stop; later ones end at once."""

    def __init__(self, app: jobq.App, where: str) -> None:
        self.seen = Effects()
        function: Any = self.in_the_loop if where == "loop" else self.in_a_thread
        self.handler: Any = app.handler("k", max_attempts=3)(function)

    async def in_the_loop(self) -> str:
        attempt = jobq.current().job.attempt
        self.seen.add(("begins", attempt))
        try:
            await anyio.sleep(30 if attempt == 1 else 0)
        finally:
            self.seen.add(("ends", attempt))
        return f"attempt {attempt}"

    def in_a_thread(self) -> str:
        attempt, gate = jobq.current().job.attempt, Gate()
        self.seen.add(("begins", attempt))
        while attempt == 1 and not jobq.current().cancelled:
            gate.wait_in_thread(0.005)
        self.seen.add(("ends", attempt))
        return f"attempt {attempt}"

    async def until_running(self) -> None:
        await self.seen.until(1)


@ANY_WHERE
async def test_f26_a_worker_whose_row_is_deleted_stops_its_jobs_and_goes_on_under_a_new_id(
    bench: Bench, app: jobq.App, where: str
) -> None:
    stoppable = Stoppable(app, where)

    async with bench.working(app, lease=BRIEF) as worker:
        id_ = bench.enqueue(stoppable.handler)
        await stoppable.until_running()
        before = worker.stats().worker_id
        bench.execute(sa.delete(workers))
        job = await bench.until(id_)

        assert worker.stats().worker_id not in (before, None)
        assert [row.id for row in bench.workers()] == [worker.stats().worker_id]

    # A rescuer that looks everywhere just then counts a failure: to it the worker was lost. The worker counts none.
    assert (job.state, job.failures, job.outcome) == (State.DONE, worker.stats().rescued, f"ok: attempt {job.attempt}")
    assert stoppable.seen.seen[:2] == [("begins", 1), ("ends", 1)]
    assert (worker.stats().leases_lost, worker.stats().lost) == (1, 1)


@ANY_WHERE
async def test_a_running_job_that_is_cancelled_is_stopped_and_nothing_is_written(
    bench: Bench, app: jobq.App, where: str
) -> None:
    stoppable, events = Stoppable(app, where), Effects()
    app.on_error(events.add)

    async with bench.working(app, lease=BRIEF) as worker:
        id_ = bench.enqueue(stoppable.handler)
        await stoppable.until_running()
        with bench.connect() as connection:
            assert jobq.cancel(connection, id_, running=True).ids == (id_,)
        await eventually(lambda: worker.stats().lost == 1 and len(stoppable.seen) == 2, "the handler's end")
        assert worker.stats().held == 0

    job = bench.job(id_)
    assert (job.state, job.outcome, job.failures, events.seen) == (State.CANCELLED, "err: cancelled", 0, [])


@ANY_WHERE
async def test_a_running_job_that_is_taken_back_by_hand_does_not_run_twice_at_once(
    bench: Bench, app: jobq.App, where: str
) -> None:
    stoppable = Stoppable(app, where)

    async with bench.working(app, lease=BRIEF) as worker:
        id_ = bench.enqueue(stoppable.handler)
        await stoppable.until_running()
        bench.change(id_, worker_id=None)
        job = await bench.until(id_)

    assert (job.state, job.failures) == (State.DONE, 0)
    again = job.attempt
    assert stoppable.seen.seen == [("begins", 1), ("ends", 1), ("begins", again), ("ends", again)]
    assert worker.stats().lost == 1


async def test_f25_the_result_of_an_attempt_that_was_taken_away_is_refused_and_counted(
    bench: Bench, app: jobq.App
) -> None:
    gate = Gate()
    handler: Any = app.handler("k")(gate.pass_)
    quick: Any = app.handler("quick")(lambda: None)

    async with bench.working(app) as worker:
        ids = bench.enqueue_many(handler, 3)
        await gate.until_waiting(3)
        bench.add_worker(5, HOUR, ran_out=-HOUR)
        bench.change(ids[0], attempt=9, worker_id=5)  # another worker runs it
        bench.change(ids[1], worker_id=5)  # the same attempt, as if numbers were given twice
        with bench.connect() as connection:
            jobq.cancel(connection, ids[2], running=True)  # it has ended
        gate.open()
        await eventually(lambda: worker.stats().refused == 3, "three refused writes")
        assert (await bench.until(bench.enqueue(quick))).state is State.DONE
        states = [bench.job(id_).state for id_ in ids]

    assert states == [State.RUNNING, State.RUNNING, State.CANCELLED]
    assert (worker.stats().ok, worker.stats().held) == (1, 0)


async def test_a_worker_that_cannot_beat_for_a_lease_stops_its_jobs_and_gives_them_back(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    stoppable, beat = Stoppable(app, "loop"), leasing.beat
    lost = sa_exc.OperationalError("UPDATE", {}, Exception("cut"), connection_invalidated=True)

    def broken(*_: Any) -> bool:
        raise lost

    async with bench.working(app, lease=BRIEF) as worker:
        id_ = bench.enqueue(stoppable.handler)
        await stoppable.until_running()
        monkeypatch.setattr(leasing, "beat", broken)
        await eventually(lambda: worker.stats().leases_lost, "the lease's being lost")
        monkeypatch.setattr(leasing, "beat", beat)
        job = await bench.until(id_)

    assert (job.state, job.failures) == (State.DONE, worker.stats().rescued)  # 1 where its own rescuer was quicker
    assert stoppable.seen.seen[:2] == [("begins", 1), ("ends", 1)]


async def test_jobs_of_a_claim_that_comes_back_after_the_lease_is_lost_run_under_the_new_id(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Effects()

    @app.handler("k")
    async def handler() -> None:
        seen.add(jobq.current().job.attempt)

    async with bench.working(app) as worker:
        assembly = assembly_of(worker)
        run, before = assembly.database.run, worker.stats().worker_id

        async def held_up(function: Any, *args: Any, **kwargs: Any) -> Any:
            result = await run(function, *args, **kwargs)
            if function.__name__ == "claim" and result.jobs and assembly.lease.worker_id == before:
                assert before is not None
                assembly._lease_lost(before, "lost while a claim was in flight")
            return result

        monkeypatch.setattr(assembly.database, "run", held_up)
        await more_claims(worker, 2)
        ids = bench.enqueue_many(handler, 4)
        await bench.until_all_ended()

    assert seen.seen == [2, 2, 2, 2]
    assert {(bench.job(id_).state, bench.job(id_).failures) for id_ in ids} == {(State.DONE, 0)}


@contextmanager
def elsewhere(app: jobq.App, url: str, **options: Any) -> Iterator[jobq.Worker]:
    """A worker in a thread and a loop of its own."""
    worker, loops = jobq.Worker(app, url, **{**TINY, **options}), []

    async def run() -> None:
        loops.append(asyncio.get_running_loop())
        await worker.run()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        yield worker
    finally:
        loops[0].call_soon_threadsafe(worker.stop)
        thread.join(20)


async def test_f24_a_handler_that_blocks_the_loop_for_longer_than_the_lease_keeps_its_job(
    bench: Bench, app: jobq.App
) -> None:
    seen, second = timedelta(seconds=1), Effects()

    @app.handler("k")
    async def handler() -> None:
        second.add(jobq.current().job.attempt)
        time.sleep(2.5)  # noqa: ASYNC251  # the loop stands still

    async with bench.working(app, lease=seen) as worker:
        id_ = bench.enqueue(handler)
        await second.until(1)
        with elsewhere(app, bench.url, lease=seen) as other:
            job = await bench.until(id_)

    assert (job.state, job.attempt, job.failures, second.seen) == (State.DONE, 1, 0, [1])
    assert (other.stats().rescued, worker.stats().leases_lost) == (0, 0)
