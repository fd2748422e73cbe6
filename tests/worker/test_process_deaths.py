"""Children that die, are killed, or are replaced: one failed attempt of one job, and the pool heals."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import process_app
import psutil
import pytest
from bench import HOUR, Bench, eventually
from offspring import children
from process_app import app

import jobq
from jobq import State

pytestmark = pytest.mark.anyio
DEATHS = {
    "exit": "the job's process ended with exit code 7 before the job did",
    "kill": "the job's process was ended by signal 9 (SIGKILL) (the kernel does so when memory runs out)",
    "babble": "the job's process was ended: it spoke with the worker no more, or wrongly",
    "segfault": "the job's process was ended by signal 11 (SIGSEGV)",
}


async def test_f34_a_child_that_dies_fails_its_own_job_alone_and_the_pool_heals(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with bench.working(app, processes=2) as worker:
        deaths = {how: bench.enqueue(process_app.dies, how) for how in DEATHS}
        good = [bench.enqueue(process_app.good) for _ in range(5)]
        dead = {how: await bench.until(id_) for how, id_ in deaths.items()}
        done = [await bench.until(id_) for id_ in good]
        assert worker.stats().left_behind == 0

    for how, job in dead.items():
        assert (job.state, job.failures, job.attempt) == (State.DEAD, 1, 1)
        assert (job.errors[0].error, job.errors[0].message) == ("jobq.errors.ChildDiedError", DEATHS[how])
    assert [(job.state, job.failures) for job in done] == [(State.DONE, 0)] * 5
    assert "Fatal Python error: Segmentation fault" in caplog.text
    assert children() == set()


async def test_a_child_that_dies_while_it_is_idle_fails_nothing(bench: Bench) -> None:
    async with bench.working(app, processes=1):
        first = await bench.until(bench.enqueue(process_app.good))
        (idle,) = children()
        psutil.Process(idle).kill()
        second = await bench.until(bench.enqueue(process_app.good))

    assert (first.outcome, second.state, second.failures) == (f"ok: {idle}", State.DONE, 0)
    assert second.outcome != first.outcome


async def test_a_handler_that_forks_ends_once(bench: Bench) -> None:
    async with bench.working(app, processes=1):
        forked = [await bench.until(bench.enqueue(process_app.forks)) for _ in range(3)]
        good = await bench.until(bench.enqueue(process_app.good))
        assert good.outcome in {f"ok: {pid}" for pid in children()}

    assert {job.outcome for job in forked} == {"ok: original"}


async def test_a_busy_child_that_ignores_term_is_killed_at_its_timeout_with_what_it_started(
    bench: Bench, tmp_path: Path
) -> None:
    mark = tmp_path / "busy"
    handler = process_app.busy.options(timeout=timedelta(seconds=2), max_attempts=1)
    async with bench.working(app, processes=1) as worker:
        job = await bench.until(bench.enqueue(handler, str(mark)))
        await eventually(lambda: not children(), "the death of the child")
        assert worker.stats().left_behind == 0

    (helper,) = os.listdir(tmp_path / "helper")
    assert (job.state, job.errors[0].error) == (State.DEAD, "TimeoutError")
    assert not psutil.pid_exists(int(mark.read_text()))
    await eventually(lambda: is_gone(int(helper)), "the end of what the handler had started")


def is_gone(pid: int) -> bool:
    """Also while nobody has reaped it, who is not its parent any more."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_the_timeout_of_a_job_that_waits_for_a_child_does_not_count_yet(bench: Bench, tmp_path: Path) -> None:
    async with bench.working(app, processes=1) as worker:
        holder = bench.enqueue(process_app.waits, str(tmp_path / "mark"))
        await eventually((tmp_path / "mark").exists, "its start")
        waiting = bench.enqueue(process_app.good.options(timeout=timedelta(seconds=2)))
        await eventually(lambda: worker.stats().running == 2, "one that waits")
        late = monotonic() + 2.5
        await eventually(lambda: monotonic() > late, "the time that it would have had")
        (tmp_path / "mark").unlink()
        jobs = [await bench.until(id_) for id_ in (holder, waiting)]

    assert [job.state for job in jobs] == [State.DONE, State.DONE]


@pytest.mark.parametrize(
    "handler", [process_app.polite, process_app.checks, process_app.cleans_up], ids=["plain", "checking", "async"]
)
async def test_a_handler_that_is_told_to_stop_has_a_moment_to_clean_up(
    bench: Bench, tmp_path: Path, handler: Any
) -> None:
    mark = tmp_path / "mark"
    async with bench.working(app, processes=1):
        id_ = bench.enqueue(handler.options(timeout=timedelta(seconds=1)), str(mark))
        assert (await bench.until(id_)).errors[0].error == "TimeoutError"

    assert (tmp_path / "mark.told").exists()


async def test_a_job_that_was_taken_is_killed(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "busy"
    bench.add_worker(5, HOUR, ran_out=-HOUR)
    async with bench.working(app, processes=1, lease=timedelta(seconds=2)) as worker:
        id_ = bench.enqueue(process_app.busy, str(mark))
        await eventually(mark.exists, "its start")
        bench.change(id_, worker_id=5)
        await eventually(lambda: not psutil.pid_exists(int(mark.read_text())), "the death of the child")
        await eventually(lambda: worker.stats().lost == 1, "the count")
        assert (bench.job(id_).state, bench.job(id_).failures) == (State.RUNNING, 0)


async def test_a_shutdown_kills_what_does_not_end_and_gives_it_back(bench: Bench, tmp_path: Path) -> None:
    async with bench.working(app, processes=1, grace=timedelta(0)) as worker:
        ids = [bench.enqueue(process_app.busy, str(tmp_path / "busy")) for _ in range(3)]
        await eventually((tmp_path / "busy").exists, "its start")
        await eventually(lambda: worker.stats().running == 2, "one that waits")

    assert [(bench.job(id_).state, bench.job(id_).failures) for id_ in ids] == [(State.PENDING, 0)] * 3
    assert (worker.stats().given_back, worker.stats().left_behind, children()) == (2, 0, set())


async def test_a_child_is_replaced_after_so_many_jobs(bench: Bench) -> None:
    async with bench.working(app, processes=1, max_jobs_per_child=2):
        outcomes = [(await bench.until(bench.enqueue(process_app.good))).outcome for _ in range(5)]
        await eventually(lambda: len(children()) == 1, "the end of those before")

    assert [outcomes.count(each) for each in dict.fromkeys(outcomes)] == [2, 2, 1]


async def test_a_job_that_eats_memory_is_ended_with_a_clear_error(bench: Bench) -> None:
    async with bench.working(app, processes=1, max_memory_per_child=300):
        job = await bench.until(bench.enqueue(process_app.eats, 400))
        good = await bench.until(bench.enqueue(process_app.good))

    assert (job.errors[0].error, good.state) == ("jobq.errors.MemoryLimitError", State.DONE)
    assert job.errors[0].message.endswith("more than the 300 MiB that a child may")


async def test_f74_five_hundred_jobs_leave_no_descriptor(bench: Bench) -> None:
    async with bench.working(app, processes=2, max_jobs_per_child=200) as worker:
        before = await descriptors_after(bench, 10)
        bench.enqueue_many(process_app.good, 500)
        await eventually(lambda: worker.stats().ok >= 510, "five hundred jobs", within=90)
        assert abs(await descriptors_after(bench, 10) - before) <= 3


async def descriptors_after(bench: Bench, number: int) -> int:
    bench.enqueue_many(process_app.good, number)
    await bench.until_all_ended()
    await eventually(lambda: len(children()) <= 2, "the end of those before")
    return len(os.listdir("/proc/self/fd"))


async def test_f45_children_share_no_connection_with_their_worker(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with bench.engine.connect():  # the pool of the parent is warm
        async with bench.working(app, processes=4, concurrency=20) as worker:
            url = bench.url.replace("+psycopg", "")
            with bench.connect() as connection:
                jobq.enqueue_many(connection, process_app.asks, [{"url": url}] * 100)
            own: set[int] = set()

            def ended() -> bool:
                own.update(row.pid for row in bench.execute(OWN))
                return worker.stats().ok == 100

            await eventually(ended, "a hundred jobs", within=60)
    with bench.connect() as connection:
        jobs = jobq.jobs(connection, limit=None)

    assert {job.state for job in jobs} == {State.DONE}
    pids = [str(job.outcome).removeprefix("ok: ").split() for job in jobs]
    assert len({child for child, _ in pids}) == 4
    assert own
    assert own.isdisjoint({int(backend) for _, backend in pids})
    assert caplog.text.count("asked") == 100
    assert not [word for word in ("lost synchronization", "bad record mac") if word in caplog.text]


OWN = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    " AND (application_name LIKE 'jobq %' OR pid = pg_backend_pid())"
)
