"""Jobs of workers that are gone are taken back; those of workers that are slow are not."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from bench import Bench, Gate, assembly_of, eventually

import jobq
from jobq import State
from jobq.store.rescuing import Rescue

pytestmark = pytest.mark.anyio


async def test_f26_jobs_of_a_worker_whose_lease_ran_out_are_rescued(bench: Bench, app: jobq.App) -> None:
    app.handler("k")(lambda: None)
    lost = bench.add_worker(11, timedelta(milliseconds=1), ran_out=timedelta(seconds=9))
    id_ = bench.add("k", worker_id=lost, attempt=1)

    async with bench.working(app) as worker:
        job = await bench.until(id_)
        assert [row.id for row in bench.workers()] == [worker.stats().worker_id]

    assert (job.state, job.attempt, job.failures) == (State.DONE, 2, 1)
    assert [(error.error, error.worker, error.attempt) for error in job.errors] == [("WorkerLost", "host:11", 1)]
    assert worker.stats().rescued == 1


async def test_f26_jobs_of_a_worker_whose_row_was_deleted_by_hand_are_rescued(bench: Bench, app: jobq.App) -> None:
    app.handler("k")(lambda: None)
    spare = bench.add("k", worker_id=12, attempt=1)
    spent = bench.add("k", worker_id=12, attempt=5, failures=4, max_attempts=5)

    async with bench.working(app):
        jobs = [await bench.until(id_) for id_ in (spare, spent)]

    assert [(job.state, job.failures) for job in jobs] == [(State.DONE, 1), (State.DEAD, 5)]
    assert [(job.errors[-1].error, job.errors[-1].worker) for job in jobs] == [("WorkerLost", "worker 12")] * 2


async def test_a4_a_long_lease_is_not_judged_by_a_short_one(bench: Bench, app: jobq.App) -> None:
    gate = Gate()
    handler: Any = app.handler("k")(gate.pass_)

    async with bench.working(app, lease=timedelta(seconds=20), concurrency=1) as patient:
        id_ = bench.enqueue(handler)
        await gate.until_waiting()
        async with bench.working(app, lease=timedelta(milliseconds=200)) as hasty:
            since = time.monotonic()
            await eventually(lambda: time.monotonic() - since > 1.2, "several leases of the hasty one")
        gate.open()
        job = await bench.until(id_)

    assert (job.state, job.attempt, job.failures) == (State.DONE, 1, 0)
    assert (hasty.stats().rescued, patient.stats().leases_lost) == (0, 0)


async def test_a4_nobody_is_declared_dead_within_a_lease_of_the_rescuers_own_return(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.handler("k")(lambda: None)

    async with bench.working(app, lease=timedelta(seconds=3)) as worker:
        rescuer, database = assembly_of(worker).rescuer, assembly_of(worker).database
        await eventually(lambda: rescuer._look_from, "the first pass")

        async def away(*_: Any, **__: Any) -> Any:
            raise ConnectionError("cut")

        with monkeypatch.context() as patch:
            patch.setattr(database, "run", away)
            patch.setattr(database, "transaction", away)
            with pytest.raises(ConnectionError):
                await rescuer.run_once()
        lost = bench.add_worker(11, timedelta(seconds=1), ran_out=timedelta(hours=1))
        id_ = bench.add("k", worker_id=lost, attempt=1)

        assert (await rescuer.run_once()).lost_workers == ()
        assert bench.job(id_).state is State.RUNNING
        job = await bench.until(id_)  # by the rescuer's own passes, once it has been back for a second

    assert (job.state, job.failures) == (State.DONE, 1)


async def test_f26_jobs_of_no_worker_are_looked_for_again_while_passes_find_nothing(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobq.worker.rescuer.LOOK_EVERYWHERE", timedelta(seconds=2))
    app.handler("k")(lambda: None)

    async with bench.working(app, lease=timedelta(seconds=3)) as worker:  # so there are passes every 0.5 s
        await eventually(lambda: assembly_of(worker).rescuer._look_from, "the first look")
        id_ = bench.add("k", worker_id=12, attempt=1)
        job = await bench.until(id_)

    assert (job.state, job.failures) == (State.DONE, 1)


async def test_a_pass_that_finds_nobody_lost_opens_no_transaction(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench.working(app) as worker:
        rescuer = assembly_of(worker).rescuer
        await eventually(lambda: rescuer._look_from, "the first look")
        look_from = rescuer._look_from
        with monkeypatch.context() as patch:
            patch.setattr(assembly_of(worker).database, "transaction", None)
            assert await rescuer.run_once() == Rescue()

    assert rescuer._look_from == look_from
