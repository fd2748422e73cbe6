"""Cancelling jobs that run: their worker is told by the commit, believes the database alone, and says what it was."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import process_app
import psutil
import pytest
import sqlalchemy as sa
from bench import HOUR, Bench, Effects, Gate, eventually

import jobq
from jobq import State
from jobq.database import Database
from jobq.tables import slots
from jobq.worker.assembly import Assembly
from jobq.worker.losses import Losses

pytestmark = pytest.mark.anyio
# With this lease a heartbeat comes every ten minutes: what is quicker has been told.
TOLD = {"lease": HOUR}


@pytest.fixture
def only_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does the worker look because its listener has just connected."""
    monkeypatch.setattr(Assembly, "_told", lambda self, position: self.claimer.tell(position))


def cancel(bench: Bench, *ids: int) -> None:
    with bench.connect() as connection:
        assert jobq.cancel(connection, *ids, running=True).ids == tuple(sorted(ids))


async def test_an_async_handler_is_cancelled_by_the_notification_and_the_log_says_by_whom(
    bench: Bench, app: jobq.App, only_told: None, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Effects()

    @app.handler("k")
    async def handler() -> None:
        seen.add("begins")
        try:
            await anyio.sleep_forever()
        finally:
            seen.add(jobq.current().cancelled)

    caplog.set_level(logging.INFO, "jobq.worker")
    async with bench.working(app, **TOLD) as worker:
        await bench.until_listening()
        id_ = bench.enqueue(handler)
        await seen.until(1)
        cancel(bench, id_)
        assert bench.job(id_).state is State.CANCELLED  # at once, whatever the handler does
        await seen.until(2)
        await eventually(lambda: worker.stats().held == 0, "the job being let go")

    assert seen.seen == ["begins", True]
    assert (worker.stats().lost, worker.stats().cancelled, worker.stats().refused) == (1, 1, 0)
    assert f"job {id_} (k): cancelled by hand while attempt 1 ran; nothing is written" in caplog.messages
    assert (bench.job(id_).state, bench.job(id_).errors) == (State.CANCELLED, ())


async def test_a_thread_is_asked(bench: Bench, app: jobq.App, only_told: None) -> None:
    seen, tick = Effects(), threading.Event()

    @app.handler("k")
    def handler() -> None:
        seen.add("begins")
        while not jobq.current().cancelled:
            tick.wait(0.005)
        seen.add("ends")

    async with bench.working(app, **TOLD) as worker:
        await bench.until_listening()
        id_ = bench.enqueue(handler)
        await seen.until(1)
        cancel(bench, id_)
        await seen.until(2)
        await eventually(lambda: worker.stats().cancelled == 1, "the count")
        assert worker.stats().left_behind == 0


async def test_a_listener_that_connects_anew_makes_up_for_what_it_has_missed(bench: Bench, app: jobq.App) -> None:
    running = Effects()

    @app.handler("k")
    async def handler() -> None:
        running.add("begins")
        await anyio.sleep_forever()

    async with bench.working(app, **TOLD) as worker:
        [listener] = await bench.until_listening()
        id_ = bench.enqueue(handler)
        await running.until(1)
        with bench.connect() as connection:  # in one transaction: the word is told when nobody listens any more
            connection.execute(sa.select(sa.func.pg_terminate_backend(listener.pid, 5000)))
            jobq.cancel(connection, id_, running=True)
        await eventually(lambda: worker.stats().cancelled == 1, "the look after the reconnect")


async def test_without_notifications_the_heartbeat_is_the_floor(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBQ_NOTIFY", "0")
    running = Effects()

    @app.handler("k")
    async def handler() -> None:
        running.add("begins")
        await anyio.sleep_forever()

    async with bench.working(app, lease=timedelta(seconds=1.2)) as worker:
        id_ = bench.enqueue(handler)
        await running.until(1)
        cancel(bench, id_)
        await eventually(lambda: worker.stats().cancelled == 1, "the heartbeat's look")


def flood(bench: Bench, words: list[str]) -> None:
    """Each a commit of its own."""
    connection = bench.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    with connection:
        for _ in range(300):
            for word in words:
                connection.execute(sa.select(sa.func.pg_notify("jobq", word)))


async def test_forged_notifications_stop_nothing_and_cost_a_few_looks(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, looks = Gate(), Effects()
    look = Losses.run_once

    async def counted(self: Losses) -> None:
        looks.add("look")
        await look(self)

    monkeypatch.setattr(Losses, "run_once", counted)

    @app.handler("k")
    async def handler() -> None:
        await gate.pass_()

    async with bench.working(app, **TOLD) as worker:
        await bench.until_listening()
        id_ = bench.enqueue(handler)
        await gate.until_waiting()
        before, began = len(looks), anyio.current_time()
        await anyio.to_thread.run_sync(
            flood, bench, [f"taken|{worker.stats().worker_id}", "taken|1", "taken|x", "taken|"]
        )
        await looks.until(before + 1)
        assert len(looks) - before <= 2 + (anyio.current_time() - began) / 0.1
        gate.open()
        assert (await bench.until(id_)).state is State.DONE

    assert worker.stats().lost == 0


async def test_a_job_that_is_cancelled_while_its_claim_is_answered_is_stopped_too(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notification is there before the worker knows the job: the first look cannot see it."""
    cancelled, looked = anyio.Event(), anyio.Event()
    run, look = Database.run, Losses.run_once

    async def slow(self: Database, function: Any, *args: Any, **kwargs: Any) -> Any:
        result = await run(self, function, *args, **kwargs)
        if function.__name__ == "claim" and result.jobs:
            await anyio.to_thread.run_sync(cancel, bench, result.jobs[0].id)
            cancelled.set()
            await looked.wait()
        return result

    async def noted(self: Losses) -> None:
        is_after = cancelled.is_set()
        await look(self)
        if is_after:
            looked.set()

    monkeypatch.setattr(Database, "run", slow)
    monkeypatch.setattr(Losses, "run_once", noted)

    @app.handler("k")
    async def handler() -> None:
        await anyio.sleep_forever()

    async with bench.working(app, **TOLD) as worker:
        await bench.until_listening()
        id_ = bench.enqueue(handler)
        await eventually(lambda: worker.stats().cancelled == 1, "the second look")

    assert bench.job(id_).state is State.CANCELLED


async def test_a_slot_stays_taken_while_the_thread_of_a_cancelled_job_goes_on(bench: Bench, app: jobq.App) -> None:
    gate, seen = Gate(), Effects()
    app.queue("q", concurrency=1)

    @app.handler("k", queue="q")
    def handler(n: int) -> None:
        seen.add(n)
        if n == 1:
            gate.pass_in_thread()
            seen.add("ends")

    first, second = bench.enqueue(handler, 1), bench.enqueue(handler, 2)
    async with bench.working(app, **TOLD) as worker:
        await bench.until_listening()
        await gate.until_waiting()
        cancel(bench, first)
        await eventually(lambda: worker.stats().left_behind and worker.stats().cancelled == 1, "one left behind")
        assert bench.execute(sa.select(slots.c.job_id))[0].job_id == first
        assert bench.job(second).state is State.PENDING
        gate.open()
        await bench.until(second)

    assert seen.seen == [1, "ends", 2]


async def test_a_slot_stays_taken_until_the_process_of_a_cancelled_job_is_gone(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "busy"
    bench.execute("INSERT INTO jobq.queues (name, concurrency) VALUES ('one', 1)")
    first = bench.enqueue(process_app.busy.options(queue="one"), str(mark))
    second = bench.enqueue(process_app.good.options(queue="one"))

    async with bench.working(process_app.app, processes=2, **TOLD):
        await bench.until_listening()
        await eventually(mark.exists, "the start of the child")
        cancel(bench, first)
        done = await bench.until(second)

    assert not psutil.pid_exists(int(mark.read_text()))
    gone = bench.job(first)
    assert done.attempted_at is not None
    assert gone.finished_at is not None
    assert done.attempted_at - gone.finished_at > timedelta(seconds=0.4)  # what a deaf child has before it is killed
