"""What a worker claims for an executor with few places: no job waits in it while another worker has a place."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa
from bench import HOUR, Bench, Gate, eventually

import jobq
from jobq.executors import Call, CoroutineExecutor, Ended
from jobq.tables import jobs

pytestmark = pytest.mark.anyio


class OneAtATime(CoroutineExecutor):
    """As the process executor with one child, but here."""

    places = 1

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(1)

    async def run(self, call: Call) -> Ended:
        assert call.attempt is not None
        call.attempt.waits()
        async with self._room:
            call.attempt.begins()
            return await super().run(call)


def narrow_app(app: jobq.App, gate: Gate, on_interrupt: str = "retry") -> tuple[jobq.Kind[[]], jobq.Kind[[]]]:
    @app.handler("scale", executor="narrow", on_interrupt=on_interrupt)  # type: ignore[arg-type]
    async def scale() -> None:
        await gate.pass_()

    @app.handler("send")
    async def send() -> None: ...

    return scale, send


def held_by_workers(bench: Bench) -> list[int]:
    """How many jobs each worker has, the most first."""
    count = sa.func.count()
    asked = sa.select(count).where(jobs.c.worker_id.is_not(None)).group_by(jobs.c.worker_id).order_by(count.desc())
    return [number for (number,) in bench.execute(asked)]


async def test_a_worker_holds_one_job_more_than_it_has_places_for_and_goes_on_with_others(
    bench: Bench, app: jobq.App
) -> None:
    gate = Gate()
    scale, send = narrow_app(app, gate)
    bench.enqueue_many(scale, 10)
    async with bench.working(app, executors={"narrow": OneAtATime()}, concurrency=8) as worker:
        await gate.until_waiting()
        await eventually(lambda: worker.stats().held == 2, "the one that waits")
        done = bench.enqueue_many(send, 30)
        await eventually(lambda: worker.stats().ok == 30, "all others")
        assert held_by_workers(bench) == [2]
        gate.open()
        ended = await bench.until_all_ended()
    assert set(done) < set(ended)
    assert set(ended.values()) == {jobq.State.DONE}


async def test_what_a_worker_has_no_place_for_another_one_runs(bench: Bench, app: jobq.App) -> None:
    gate = Gate()
    scale, _ = narrow_app(app, gate)
    bench.enqueue_many(scale, 4)
    async with bench.working(app, executors={"narrow": OneAtATime()}) as first:
        await gate.until_waiting()
        async with bench.working(app, executors={"narrow": OneAtATime()}):
            await gate.until_waiting(2)
            assert held_by_workers(bench) == [2, 2]
            gate.open()
            await bench.until_all_ended()
        await eventually(lambda: first.stats().ok == 2, "its half")


async def test_none_waits_for_a_place_where_a_dead_worker_makes_jobs_dead(bench: Bench, app: jobq.App) -> None:
    gate = Gate()
    scale, _ = narrow_app(app, gate, on_interrupt="fail")
    bench.enqueue_many(scale, 4)
    async with bench.working(app, executors={"narrow": OneAtATime()}) as worker:
        await gate.until_waiting()
        await bench.until_listening()
        assert held_by_workers(bench) == [1]
        gate.open()
        await bench.until_all_ended()
        await eventually(lambda: worker.stats().ok == 4, "the count of all")


async def test_the_next_job_is_claimed_when_a_place_is_free_and_no_poll_is_waited_for(
    bench: Bench, app: jobq.App
) -> None:
    gate = Gate()
    gate.open()
    scale, _ = narrow_app(app, gate)
    async with bench.working(app, executors={"narrow": OneAtATime()}, poll_interval=HOUR) as worker:
        await bench.until_listening()
        bench.enqueue_many(scale, 12)
        await eventually(lambda: worker.stats().ok == 12, "all of them")


async def test_a_limited_queue_gives_no_more_jobs_than_there_are_places(bench: Bench, app: jobq.App) -> None:
    gate = Gate()
    scale, _ = narrow_app(app, gate)
    app.queue("images", concurrency=6)
    bench.enqueue_many(scale.options(queue="images"), 6)
    async with bench.working(app, executors={"narrow": OneAtATime()}, concurrency=8):
        await gate.until_waiting()
        await eventually(lambda: held_by_workers(bench) == [2], "the one that waits")
        await asyncio.sleep(0.2)  # several looks
        assert held_by_workers(bench) == [2]
        gate.open()
        await bench.until_all_ended()
