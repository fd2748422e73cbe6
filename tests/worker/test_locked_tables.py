"""A migration that holds the table of jobs locked: the worker waits it out, and can be stopped meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import anyio
import pytest
from bench import Bench, Gate, eventually
from lock import locked

import jobq
from jobq import State

pytestmark = pytest.mark.anyio


def waiting_for_locks(bench: Bench) -> int:
    return int(
        bench.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )[0][0]
    )


async def test_f46_a_locked_table_stops_neither_the_heartbeat_nor_what_comes_after(bench: Bench, app: jobq.App) -> None:
    gate = Gate()
    long: Any = app.handler("long")(gate.pass_)
    quick: Any = app.handler("quick")(lambda: None)

    def lease_until() -> Any:
        return bench.workers()[0].lease_until

    async with bench.working(app, lease=timedelta(seconds=2)) as worker:
        held = bench.enqueue(long)
        await gate.until_waiting()
        async with locked(bench):
            await eventually(lambda: waiting_for_locks(bench), "a claim that waits")
            for _ in range(2):
                before = lease_until()
                await eventually(lambda before=before: lease_until() > before, "a beat")
        with anyio.fail_after(2):
            await bench.until(bench.enqueue(quick))
        gate.open()
        job = await bench.until(held)

    assert (job.state, job.attempt, worker.stats().leases_lost) == (State.DONE, 1, 0)


async def test_f46_a_worker_can_be_stopped_while_the_table_is_locked(bench: Bench, app: jobq.App) -> None:
    gate = Gate()
    handler: Any = app.handler("k")(gate.pass_)
    id_ = bench.enqueue(handler)
    worker, codes = jobq.Worker(app, bench.url, grace=timedelta(0), poll_interval=timedelta(milliseconds=20)), []

    async def run(*, task_status: Any) -> None:
        codes.append(await worker.run(task_status=task_status))

    async with anyio.create_task_group() as group:
        await group.start(run)
        await gate.until_waiting()
        async with locked(bench):
            await eventually(lambda: waiting_for_locks(bench), "a claim that waits")
            worker.stop()
            await eventually(lambda: codes, "the end of the run", within=6)

    assert codes == [1]  # it could not be given back: its lease runs out
    assert bench.job(id_).state is State.RUNNING
    assert len(bench.workers()) == 1
