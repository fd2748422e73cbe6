"""The processes of a Dask cluster are killed: its workers, and its scheduler."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import anyio
import dask_app
import pytest
from bench import Bench, Run, eventually
from dask_app import app
from nodes import Nodes

import jobq
from jobq import State
from jobq.executors.dask import executor

pytestmark = pytest.mark.anyio


@pytest.fixture
def node(cluster: Nodes) -> Iterator[str]:
    """One Dask worker; no other is left over from the test before."""
    cluster.revive()
    yield cluster.add_worker()
    cluster.end_workers()


async def until_there(path: Path) -> None:
    await eventually(path.exists, "its begin", within=30)


async def test_the_loss_of_a_dask_worker_is_one_failed_attempt_of_what_ran_there(
    bench: Bench, cluster: Nodes, node: str, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    async with bench.working(app, dask_scheduler=cluster.address):
        ran = bench.enqueue(dask_app.waits, str(begun))
        await until_there(begun)
        waited = bench.enqueue(dask_app.good)
        await bench.until(waited, State.RUNNING)
        other = cluster.add_worker()
        begun.unlink()
        begun.mkdir()  # an attempt that began a second time could not make its file
        cluster.kill_worker(node)
        failed, done = await bench.until_retried(ran), await bench.until(waited)
        begun.rmdir()

    assert (failed.failures, failed.errors[0].error) == (1, "jobq.errors.ChildDiedError")
    assert failed.errors[0].message == f"the Dask worker {node} was lost before the job ended"
    assert (done.state, done.outcome) == (State.DONE, f"ok: {cluster.pids[other]}")


async def test_a_function_that_kills_its_process_fails_once_and_spares_the_other_workers(
    bench: Bench, cluster: Nodes, node: str
) -> None:
    other = cluster.add_worker()
    async with bench.working(app, dask_scheduler=cluster.address):
        job = await bench.until_retried(bench.enqueue(dask_app.dies))
        died = cluster.dead_workers()
        good = await bench.until(bench.enqueue(dask_app.good))

    assert (job.failures, job.errors[0].error) == (1, "jobq.errors.ChildDiedError")
    assert len(died) == 1
    (alive,) = {node, other} - died
    assert good.outcome == f"ok: {cluster.pids[alive]}"


async def test_a_job_that_may_not_run_twice_is_dead_when_its_dask_worker_is_lost(
    bench: Bench, cluster: Nodes, node: str, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    async with bench.working(app, dask_scheduler=cluster.address):
        id_ = bench.enqueue(dask_app.waits_once, str(begun))
        await until_there(begun)
        cluster.add_worker()
        begun.unlink()
        cluster.kill_worker(node)
        job = await bench.until(id_)
        await bench.until(bench.enqueue(dask_app.good))

    assert job.state is State.DEAD
    assert job.errors[0].message == "interrupted: the Dask worker was lost while it ran"
    assert not begun.exists()


async def test_jobs_wait_for_a_scheduler_that_was_lost_and_go_on_when_it_is_back(
    bench: Bench, cluster: Nodes, node: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begun, once = tmp_path / "begun", tmp_path / "once"
    cluster.add_worker()
    async with bench.working(app, dask_scheduler=cluster.address):
        ran, interrupted = bench.enqueue(dask_app.waits, str(begun)), bench.enqueue(dask_app.waits_once, str(once))
        await until_there(begun)
        await until_there(once)
        caplog.clear()
        cluster.kill_scheduler()
        dead = await bench.until(interrupted, within=30)
        new = bench.enqueue(dask_app.good)
        await bench.until(new, State.RUNNING)
        cluster.end_workers()
        begun.unlink()
        cluster.start_scheduler()
        cluster.add_worker()
        await until_there(begun)
        begun.unlink()
        again, done = await bench.until(ran), await bench.until(new)

    assert dead.errors[0].message == "interrupted: the Dask scheduler was lost while it ran"
    assert (again.outcome, again.attempt, again.failures) == ("ok: ended", 1, 0)
    assert (done.state, done.attempt) == (State.DONE, 1)
    said = [text for text in map(logging.LogRecord.getMessage, caplog.records) if text.startswith("the Dask scheduler")]
    assert said[0] == f"the Dask scheduler {cluster.address} is out of reach: its jobs wait until it is back"
    assert len(said) == len({*said})


async def test_a_scheduler_that_was_away_while_nothing_ran_is_used_again(
    bench: Bench, cluster: Nodes, node: str, tmp_path: Path
) -> None:
    async with bench.working(app, dask_scheduler=cluster.address):
        await bench.until(bench.enqueue(dask_app.good))
        cluster.kill_scheduler()
        cluster.until_workers_ended()  # without a scheduler they end by themselves
        cluster.start_scheduler()
        address = cluster.add_worker()
        job = await bench.until(bench.enqueue(dask_app.polite, str(tmp_path / "begun")), State.RUNNING)
        await until_there(tmp_path / "begun")
        cluster.kill_worker(address)
        failed = await bench.until_retried(job.id)

    assert "was lost before the job ended" in str(failed.errors[0].message)


async def test_what_jobs_would_wait_for_without_end_is_said(
    bench: Bench, cluster: Nodes, node: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def said() -> list[str]:
        return [text for text in map(logging.LogRecord.getMessage, caplog.records) if " jobs of kind on_gpu" in text]

    monkeypatch.setattr(executor, "QUIET_SECONDS", 0.2)
    address = cluster.add_worker(resources="GPU=1")
    async with bench.working(app, dask_scheduler=cluster.address):
        await bench.until(bench.enqueue(dask_app.on_gpu))
        assert not said()
        cluster.kill_worker(address)
        waiting = [bench.enqueue(dask_app.on_gpu) for _ in range(3)]
        await eventually(said, "a word of what they wait for")
        cluster.add_worker(resources="GPU=1")
        for id_ in waiting:
            await bench.until(id_)

    assert said() == [
        f"the Dask scheduler {cluster.address} has no worker with GPU=1: jobs of kind on_gpu wait for one"
        ' (dask worker ... --resources "GPU=1")'
    ]


async def test_a_worker_that_waits_for_its_scheduler_can_be_stopped(
    bench: Bench, cluster: Nodes, node: str, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    id_ = bench.enqueue(dask_app.waits, str(begun))
    try:
        async with bench.working(app, dask_scheduler=cluster.address) as worker:
            await until_there(begun)
            cluster.kill_scheduler()
            worker.stop(now=True)
    finally:
        cluster.end_workers()
        cluster.start_scheduler()

    job = bench.job(id_)
    assert (job.state, job.failures) == (State.PENDING, 0)


async def test_a_frozen_dask_worker_holds_up_nothing_but_its_job(
    bench: Bench, cluster: Nodes, node: str, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    run = Run(jobq.Worker(app, bench.url, dask_scheduler=cluster.address))

    async with anyio.create_task_group() as group:
        await group.start(run)
        id_ = bench.enqueue(dask_app.polite, str(begun))
        await until_there(begun)
        cluster.freeze_worker(node)
        cluster.add_worker()
        good = await bench.until(bench.enqueue(dask_app.good))
        run.worker.stop(now=True)
        code = await run.end()

    assert good.state is State.DONE
    assert (bench.job(id_).state, bench.job(id_).failures, code) == (State.PENDING, 0, 70)
