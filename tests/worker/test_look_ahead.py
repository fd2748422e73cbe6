"""Jobs that a worker claims ahead of its free slots: while jobs are quick, and never to anybody's harm."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from bench import HOUR, Bench, Effects, Gate, eventually

import jobq
from jobq.tables import jobs
from jobq.worker import ahead
from jobq.worker.guard import Guard
from jobq.worker.lease import Lease

pytestmark = pytest.mark.anyio
QUICK = 200  # jobs that show the worker that jobs are quick
SLOTS = 2
TENANT: ContextVar[str] = ContextVar("tenant", default="of the worker")


class Scene:
    """A worker that has claimed ahead: its two slots are taken by jobs that wait at the gate, others wait for them."""

    def __init__(self, bench: Bench, app: jobq.App, where: str) -> None:
        self.bench, self.app = bench, app
        self.gate, self.began, self.number = Gate(), Effects(), 0

        async def quick() -> None: ...

        async def slow(name: str = "slow") -> None:
            self.began.add(name)
            await self.gate.pass_()

        def slow_in_thread(name: str = "slow") -> None:
            self.began.add(name)
            self.gate.pass_in_thread()

        is_async = where == "async"
        self.quick: jobq.Kind[Any] = app.handler("quick")(quick if is_async else lambda: None)
        self.slow: jobq.Kind[Any] = app.handler("slow", queue="slow")(slow if is_async else slow_in_thread)

    def fill(self, number: int = 50) -> None:
        """First the quick ones, then the slow ones, which come into the same look-ahead."""
        self.number = number
        self.bench.enqueue_many(self.quick, QUICK)
        self.bench.enqueue_many(self.slow.options(queue="default", priority=1), number)

    async def until_ahead(self, worker: jobq.Worker, number: int = 1) -> None:
        await self.gate.until_waiting(SLOTS)
        await eventually(lambda: worker.stats().held >= SLOTS + number, "jobs being claimed ahead")

    async def until_urgent(self, worker: jobq.Worker) -> None:
        """Until the worker has the urgent job too, or nothing waits: after half a second all goes back."""
        all_of_them = QUICK + self.number + 1
        await eventually(lambda: worker.stats().claimed == all_of_them or worker.stats().held == SLOTS, "its claim")

    def running(self) -> int:
        return len(self.bench.execute(sa.select(jobs.c.id).where(jobs.c.worker_id.is_not(None))))


@pytest.fixture(params=["async", "thread"])
def scene(bench: Bench, app: jobq.App, request: pytest.FixtureRequest) -> Scene:
    """Of handlers that have an asyncio task each, and of such that have none."""
    return Scene(bench, app, request.param)


async def test_an_urgent_job_starts_with_the_next_free_slot(bench: Bench, scene: Scene) -> None:
    scene.fill()
    async with bench.working(scene.app, concurrency=SLOTS, poll_interval=HOUR) as worker:
        await bench.until_listening()
        await scene.until_ahead(worker)
        bench.enqueue(scene.slow.options(priority=0), name="urgent")
        await scene.until_urgent(worker)
        scene.gate.open()
        await scene.began.until(SLOTS + 1)
        assert scene.began.seen[SLOTS] == "urgent"


async def test_an_urgent_job_that_nobody_tells_of_is_found_by_the_poll(bench: Bench, scene: Scene) -> None:
    scene.fill()
    async with bench.working(scene.app, concurrency=SLOTS, listen=False) as worker:
        await scene.until_ahead(worker)
        bench.add("slow", queue="slow", priority=0, args={"name": "urgent"})
        await scene.until_urgent(worker)
        scene.gate.open()
        await scene.began.until(SLOTS + 1)
        assert scene.began.seen[SLOTS] == "urgent"


async def test_what_has_waited_half_a_second_goes_back_at_no_cost(bench: Bench, scene: Scene) -> None:
    scene.fill()
    async with bench.working(scene.app, concurrency=SLOTS) as worker:
        await scene.until_ahead(worker)
        await eventually(lambda: worker.stats().given_back > 0 and scene.running() == SLOTS, "all others given back")
        assert bench.execute(sa.select(sa.func.max(jobs.c.failures)))[0][0] == 0
        await anyio.sleep(0.2)
        assert scene.running() == SLOTS, "slow jobs are claimed ahead"
        scene.gate.open()
        await bench.until_all_ended()
    assert len(scene.began) == 50


async def test_a_stopped_worker_gives_back_at_once_what_has_not_begun(bench: Bench, scene: Scene) -> None:
    scene.fill()
    async with bench.working(scene.app, concurrency=SLOTS, grace=timedelta(seconds=5)) as worker:
        await scene.until_ahead(worker)
        worker.stop()
        await eventually(lambda: scene.running() == SLOTS, "the others being given back within the grace time")
        scene.gate.open()
    assert len(scene.began) == SLOTS, "a job began after the word to stop"


async def test_a_job_that_was_taken_away_while_it_waited_never_begins(
    bench: Bench, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jobq.worker")
    scene.fill()
    async with bench.working(scene.app, concurrency=SLOTS, lease=timedelta(seconds=1)) as worker:
        await scene.until_ahead(worker)
        with bench.connect() as connection:
            jobq.cancel(connection, jobs.c.kind == "slow", running=True)
        await eventually(lambda: worker.stats().lost + worker.stats().given_back > 0, "the worker hearing of it")
        scene.gate.open()
        await bench.until_all_ended()
        await eventually(lambda: worker.stats().held == 0, "nothing being held")
    assert len(scene.began) == SLOTS
    said = [text for text in caplog.messages if "cancelled by hand" in text]
    assert worker.stats().lost == len(said)
    assert len([text for text in said if "while attempt 1 ran" in text]) <= SLOTS, "said of jobs that never began"


async def test_a_job_that_may_not_fail_once_more_never_waits(
    bench: Bench, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The death of its worker would make it dead before it has begun."""
    monkeypatch.setattr(ahead, "LONGEST_WAIT", HOUR.total_seconds())
    bench.enqueue_many(scene.quick, QUICK)
    bench.enqueue_many(scene.slow.options(queue="default", priority=1, max_attempts=1), 50)
    async with bench.working(scene.app, concurrency=SLOTS) as worker:
        await scene.gate.until_waiting(SLOTS)
        await eventually(lambda: worker.stats().held == SLOTS, "the others being given back")
        assert scene.running() == SLOTS
        scene.gate.open()
        await bench.until_all_ended()
    assert len(scene.began) == 50


async def test_what_waits_does_not_begin_once_the_lease_has_run_out(
    bench: Bench, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was frozen wakes up: others have its jobs, and nothing here has noticed yet."""
    monkeypatch.setattr(Guard, "run_once", lambda _: anyio.lowlevel.checkpoint())
    scene.fill()
    async with bench.working(scene.app, concurrency=SLOTS) as worker:
        await scene.until_ahead(worker)
        monkeypatch.setattr(Lease, "has_run_out", True)
        scene.gate.open()
        await eventually(lambda: worker.stats().given_back > 0, "the others being given back")
    assert len(scene.began) == SLOTS


async def test_a_lease_that_is_good_again_before_anybody_saw_it_lost_leaves_no_worker_idle(
    bench: Bench, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Guard, "run_once", lambda _: anyio.lowlevel.checkpoint())
    looks = iter([True] * 10)
    monkeypatch.setattr(Lease, "has_run_out", property(lambda _: next(looks, False)))
    ids = bench.enqueue_many(scene.quick, 10)
    async with bench.working(scene.app, concurrency=SLOTS, listen=False) as worker:
        await eventually(lambda: worker.stats().given_back == 10, "ten being given back")
        await eventually(lambda: worker.stats().ok == 10, "all of them being run")
    assert {bench.job(id_).failures for id_ in ids} == {0}


async def test_a_job_that_was_taken_away_and_comes_back_while_it_waits_runs_once(bench: Bench, scene: Scene) -> None:
    scene.fill(20)
    async with bench.working(scene.app, concurrency=SLOTS, lease=HOUR) as worker:
        await scene.until_ahead(worker, 5)
        freed = bench.execute(
            sa.update(jobs)
            .where(jobs.c.worker_id.is_not(None), jobs.c.kind == "slow", jobs.c.args == sa.cast({}, jobs.c.args.type))
            .values(worker_id=None, priority=0)
            .returning(jobs.c.id)
        )
        await eventually(lambda: worker.stats().lost + worker.stats().given_back > 0, "what waited being let go")
        scene.gate.open()
        await bench.until_all_ended()
    assert len(freed) > SLOTS
    assert len(scene.began) <= 20 + SLOTS  # those that ran when they were taken away run again


async def test_a_pause_by_a_handler_gives_back_what_waits_of_its_queue(bench: Bench, app: jobq.App) -> None:
    began = Effects()

    @app.handler("quick")
    async def quick() -> None: ...

    @app.handler("locked")
    async def locked() -> None:
        began.add("locked")
        await anyio.sleep(0.03)
        raise jobq.PauseQueue(HOUR, "401")

    bench.enqueue_many(quick, QUICK)
    bench.enqueue_many(locked, 50)
    async with bench.working(app, concurrency=SLOTS) as worker:
        await eventually(lambda: worker.stats().pause >= 1 and worker.stats().held == 0, "the pause")
        assert len(began) < 50
    assert set(bench.states().values()) == {jobq.State.DONE, jobq.State.PENDING}


async def test_nothing_is_claimed_ahead_where_a_dead_worker_makes_jobs_dead(
    bench: Bench, app: jobq.App, scene: Scene
) -> None:
    @app.handler("once", on_interrupt="fail")
    async def once() -> None: ...

    scene.fill()
    async with bench.working(app, concurrency=SLOTS) as worker:
        await scene.gate.until_waiting(SLOTS)
        await eventually(lambda: worker.stats().held == SLOTS, "what ended before being recorded, and no more held")
        scene.gate.open()
        await bench.until_all_ended()


async def test_what_a_handler_sets_in_its_context_never_reaches_the_next_job(bench: Bench, app: jobq.App) -> None:
    seen: list[str] = []

    @app.handler("tenant")
    async def tenant() -> None:
        seen.append(TENANT.get())
        TENANT.set("of a job")

    bench.enqueue_many(tenant, QUICK)
    async with bench.working(app, concurrency=SLOTS) as worker:
        await eventually(lambda: worker.stats().ok == QUICK, "the last job")

    assert set(seen) == {"of the worker"}
