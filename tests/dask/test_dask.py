"""Handlers with executor="dask" on a cluster that stays: what crosses, what is told to a function that runs there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import dask_app
import pytest
from bench import HOUR, Bench, Run, eventually
from dask_app import app
from nodes import Nodes

import jobq
from jobq import State
from jobq.executors.dask import cluster as connection

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def address(cluster: Nodes) -> Iterator[str]:
    """The address of a cluster with one worker that has two threads and one GPU."""
    cluster.add_worker(threads=2, resources="GPU=1")
    yield cluster.address
    cluster.end_workers()


async def test_args_and_results_cross_as_they_are(bench: Bench, cluster: Nodes, address: str) -> None:
    async with bench.working(app, dask_scheduler=address):
        order = dask_app.Order(7, ["ä", "\u2028", "'"])
        plain = await bench.until(bench.enqueue(dask_app.answer, order, timedelta(seconds=1.5)))
        loop = await bench.until(bench.enqueue(dask_app.async_answer, name="Ann"))

    (pid,) = cluster.pids.values()
    assert plain.outcome == f"ok: 7 {order.notes} 0:00:01.500000 ['around'] answer 1 in {pid}"
    assert loop.outcome == "skip: Ann ['around'] None"


async def test_what_is_raised_has_its_class_its_attributes_and_where_it_was(bench: Bench, address: str) -> None:
    async with bench.working(app, dask_scheduler=address):
        job = await bench.until_retried(bench.enqueue(dask_app.raises))

    assert (job.errors[0].error, job.errors[0].message) == ("dask_app.Declined", "7")
    assert "raise Declined" in str(job.errors[0].traceback)
    assert job.run_at - job.created_at > HOUR * 0.9  # a policy by the class, found among those of the worker


async def test_progress_and_checkpoints_are_kept(bench: Bench, address: str) -> None:
    async with bench.working(app, dask_scheduler=address):
        id_ = bench.enqueue(dask_app.tells)
        failed = await bench.until_retried(id_)
        bench.make_due(id_)
        job = await bench.until(id_)

    assert failed.progress is not None
    assert (failed.progress.fraction, failed.progress.message) == (1, "page 1000")
    assert job.outcome == "ok: was at {'page': 1000}"


async def test_a_transaction_is_refused_with_the_reason(bench: Bench, address: str) -> None:
    async with bench.working(app, dask_scheduler=address):
        job = await bench.until(bench.enqueue(dask_app.pays))

    assert job.state is State.DEAD
    assert job.errors[0].error == "jobq.errors.ContextError"
    assert str(job.errors[0].message).startswith("no transaction here: the function runs away from its worker")


@pytest.mark.parametrize("handler", [dask_app.polite, dask_app.cleans_up], ids=["looks", "async"])
async def test_at_its_timeout_a_function_is_told_to_stop(
    handler: jobq.Handler[..., Any], bench: Bench, address: str, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    async with bench.working(app, dask_scheduler=address) as worker:
        job = await bench.until_retried(bench.enqueue(handler.options(timeout=timedelta(seconds=0.3)), str(begun)))
        assert worker.stats().left_behind == 0

    assert job.errors[0].error == "TimeoutError"
    assert begun.with_suffix(".told").exists()


async def test_a_deaf_function_is_left_behind_until_it_has_ended(bench: Bench, address: str, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    async with bench.working(app, dask_scheduler=address) as worker:
        id_ = bench.enqueue(dask_app.waits.options(timeout=timedelta(seconds=0.3)), str(begun))
        job = await bench.until_retried(id_)
        await eventually(lambda: worker.stats().left_behind == 1, "it being listed")
        begun.unlink()
        await eventually(lambda: worker.stats().left_behind == 0, "its end being heard of")

    assert job.errors[0].error == "TimeoutError"


async def test_what_waits_for_a_place_on_the_cluster_does_not_use_up_its_timeout(
    bench: Bench, address: str, tmp_path: Path
) -> None:
    paths = [tmp_path / str(number) for number in range(2)]
    async with bench.working(app, dask_scheduler=address):
        for path in paths:
            bench.enqueue(dask_app.waits, str(path))
        for path in paths:
            await eventually(path.exists, "both threads being taken")
        waiting = bench.enqueue(dask_app.good.options(timeout=timedelta(seconds=0.2)))
        await bench.until(waiting, State.RUNNING)
        more = bench.enqueue(
            dask_app.polite.options(timeout=timedelta(seconds=0.4), priority=0), str(tmp_path / "more")
        )
        await bench.until(more, State.RUNNING)
        paths[0].unlink()
        await bench.until_retried(more)
        paths[1].unlink()
        job = await bench.until(waiting)

    assert (job.state, job.failures) == (State.DONE, 0)


async def test_a_cancelled_worker_tells_its_functions_and_gives_their_jobs_back(
    bench: Bench, address: str, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    id_ = bench.enqueue(dask_app.polite, str(begun))
    async with bench.working(app, dask_scheduler=address) as worker:
        await eventually(begun.exists, "its begin")
        worker.stop(now=True)

    assert begun.with_suffix(".told").exists()
    assert (bench.job(id_).state, bench.job(id_).failures) == (State.PENDING, 0)


async def test_a_job_that_is_cancelled_while_it_runs_is_told_and_stays_cancelled(
    bench: Bench, address: str, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    async with bench.working(app, dask_scheduler=address) as worker:
        id_ = bench.enqueue(dask_app.polite, str(begun))
        await eventually(begun.exists, "its begin")
        with bench.connect() as connection:
            jobq.cancel(connection, id_, running=True)
        await eventually(begun.with_suffix(".told").exists, "its being told")
        await eventually(lambda: worker.stats().running == 0, "its end")

    assert bench.job(id_).state is State.CANCELLED


async def test_a_job_with_resources_runs_where_they_are(bench: Bench, cluster: Nodes, address: str) -> None:
    without = cluster.add_worker(threads=4)
    async with bench.working(app, dask_scheduler=address, concurrency=20):
        ids = [bench.enqueue(dask_app.on_gpu) for _ in range(12)]
        where = {(await bench.until(id_)).outcome for id_ in ids}

    assert where == {f"ok: {pid}" for address, pid in cluster.pids.items() if address != without}
    cluster.kill_worker(without)


async def test_no_scheduler_at_the_start_ends_the_worker_with_one_line(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.5)
    worker = jobq.Worker(app, bench.url, dask_scheduler="tcp://127.0.0.1:1")

    with pytest.raises(jobq.WorkerError) as caught:
        await Run(worker)()

    assert re.fullmatch(r"no Dask scheduler answers at tcp://127\.0\.0\.1:1: is it started.*", str(caught.value))


async def test_handlers_that_a_dask_worker_has_not_are_refused_at_the_start(bench: Bench, address: str) -> None:
    other = jobq.App()
    other.handler("k", executor="dask")(dask_app.touch)
    worker = jobq.Worker(other, bench.url, dask_scheduler=address, app_path="dask_app:app")

    with pytest.raises(jobq.WorkerError, match=r"no handler for k where the Dask worker .* imports dask_app:app"):
        await worker.run()


async def test_an_application_that_a_dask_worker_cannot_import_is_refused_at_the_start(
    bench: Bench, address: str
) -> None:
    worker = jobq.Worker(app, bench.url, dask_scheduler=address, app_path="nowhere:app")

    with pytest.raises(jobq.WorkerError, match=r"the Dask worker .* No module named 'nowhere'"):
        await worker.run()
