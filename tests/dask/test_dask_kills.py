"""Many jobs on a cluster whose workers are killed one after the other. JOBQ_DASK_JOBS: how many jobs."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import dask_app
import pytest
from bench import Bench, eventually
from dask_app import app
from nodes import Nodes

import jobq
from jobq import State

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

JOBS = int(os.environ.get("JOBQ_DASK_JOBS", "400"))
KILLS = 10
WORKERS = 2


async def test_all_jobs_end_and_none_is_lost_while_dask_workers_are_killed(
    bench: Bench, cluster: Nodes, tmp_path: Path
) -> None:
    path = tmp_path / "ran"
    for _ in range(WORKERS):
        cluster.add_worker(threads=2)
    with bench.connect() as connection:
        rows = [dask_app.work.args(str(path))] * JOBS
        ids = {one.id for one in jobq.enqueue_many(connection, dask_app.work, rows)}

    async with bench.working(app, dask_scheduler=cluster.address, concurrency=8) as worker:
        for kill in range(1, KILLS + 1):
            cluster.add_worker(threads=2)
            wanted = JOBS * kill // (KILLS + 1)
            await eventually(lambda: worker.stats().ok >= wanted, f"{wanted} jobs", within=500)  # noqa: B023
            cluster.kill_worker(next(iter(cluster.pids)))
        await eventually(lambda: worker.stats().ok == JOBS, "all jobs", within=500)
        stats = worker.stats()

    states = await bench.until_all_ended()
    ran = Counter(map(int, path.read_text().split()))
    print(f"{JOBS} jobs, {KILLS} kills, {stats.retry} failed attempts, {ran.total() - JOBS} ran to their end twice")
    assert states == dict.fromkeys(ids, State.DONE)
    assert set(ran) == ids
    assert stats.retry <= 2 * KILLS  # at most what ran in the threads of a killed one
