"""What the database says of queues is what every worker obeys, whatever its code says."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from bench import Bench, Gate, eventually, more_claims
from limited_queues import Running

import jobq
from jobq.tables import queues

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def quick_surveys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobq.worker.surveyor.INTERVAL", timedelta(milliseconds=50))


def app_with(running: Running, gate: Gate | None = None, **settings: Any) -> jobq.App:
    """A version of the same service: its handler is the same, what it says of the queue is not."""
    app = jobq.App()
    if settings:
        app.queue("q", **settings)

    @app.handler("k", queue="q")
    async def handler(n: int) -> None:
        queue = running.begin(n)
        if gate is not None:
            await gate.pass_()
        await anyio.sleep(0.001)
        running.end(queue)

    return app


def change(bench: Bench, **values: Any) -> None:
    with bench.connect() as connection:
        jobq.set_queue(connection, "q", **values)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "the code says" in record.getMessage()]


@pytest.mark.parametrize("said", [{}, {"weight": 2}], ids=["that does not name the queue", "that gives it a weight"])
@pytest.mark.parametrize("is_old_first", [True, False], ids=["old first", "new first"])
async def test_a8_beside_an_old_version_without_fifo_the_queue_stays_one_at_a_time(
    bench: Bench, said: dict[str, Any], is_old_first: bool
) -> None:
    running = Running()
    old, new = app_with(running, **said), app_with(running, fifo=True)
    first, second = (old, new) if is_old_first else (new, old)

    async with bench.working(first) as worker, bench.working(second):
        await more_claims(worker, 1)
        with bench.connect() as connection:
            for n in range(60):
                jobq.enqueue(connection, new.handlers["k"], n)
        await bench.until_all_ended()

    assert running.starts_of("q") == list(range(60))
    assert running.most["q"] == 1


async def test_a8_a_claim_by_lanes_leaves_a_limited_queue_alone_whatever_its_worker_has_heard(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobq.worker.surveyor.INTERVAL", timedelta(hours=1))
    running = Running()
    app = app_with(running)
    async with bench.working(app) as worker:
        await more_claims(worker, 3)  # the survey with which it begins is over
        change(bench, fifo=True)
        id_ = bench.enqueue(app.handlers["k"], 1)
        await more_claims(worker, 3)

    assert bench.job(id_).attempt == 0


async def test_a8_a_default_that_differs_is_a_warning_that_names_both_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.execute(sa.insert(queues).values(name="q", weight=3, fifo=False, concurrency=4))

    with caplog.at_level(logging.WARNING, logger="jobq.worker"):
        async with bench.working(app_with(Running(), weight=2, fifo=True)) as worker:
            await more_claims(worker, 4)

    assert warnings(caplog) == [
        "queue q: the code says weight 2, fifo, the database weight 3, concurrency 4, which is what counts"
        " (jobq queue set q changes it)"
    ]


async def test_what_the_code_says_first_is_no_difference(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="jobq.worker"):
        async with bench.working(app_with(Running(), weight=2, concurrency=3)) as worker:
            await more_claims(worker, 2)

    assert warnings(caplog) == []
    found = bench.execute(sa.select(queues.c.weight, queues.c.fifo, queues.c.concurrency))
    assert found == [(2, False, 3)]


async def test_a_limit_can_be_changed_while_workers_run(bench: Bench) -> None:
    running, gate = Running(), Gate()
    app = app_with(running, gate, concurrency=1)
    for n in range(8):
        bench.enqueue(app.handlers["k"], n)

    async with bench.working(app), bench.working(app):
        await gate.until_waiting(1)
        change(bench, concurrency=3)
        await gate.until_waiting(3)
        change(bench, concurrency=0)
        await gate.until_waiting(8)
        gate.open()
        await bench.until_all_ended()

    assert running.most["q"] == 8


@pytest.mark.parametrize("before", [{"concurrency": 4}, {"weight": 1}], ids=["of four", "without a limit"])
async def test_a_queue_becomes_fifo_once_what_runs_has_ended(bench: Bench, before: dict[str, Any]) -> None:
    running, gate = Running(), Gate()
    app = app_with(running, gate, **before)
    for n in range(8):
        bench.enqueue(app.handlers["k"], n)

    async with bench.working(app) as worker:
        await gate.until_waiting(4)
        change(bench, fifo=True)
        await eventually(lambda: bench.execute("SELECT FROM jobq.slots WHERE n = 1"), "the slot")
        running.most.clear()
        async with bench.working(app) as other:
            await more_claims(other, 3)
            assert gate.waiting == 4
            gate.open()
            await bench.until_all_ended()
        assert worker.stats().ok + other.stats().ok == 8

    assert running.starts_of("q")[4:] == [4, 5, 6, 7]
    assert running.most["q"] <= 1
