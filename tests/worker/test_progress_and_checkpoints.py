"""`jobq.current().progress(...)` and `.checkpoint(...)`: when they are written, by whom, and what is refused."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
import reporting_app
import sqlalchemy as sa
from bench import HOUR, Bench, Effects, Gate, assembly_of, eventually
from own_transactions import LATER, both

import jobq
from jobq import State
from jobq.model import Progress
from jobq.tables import jobs

pytestmark = pytest.mark.anyio


def writes_of(worker: jobq.Worker, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many jobs each statement of reports was about."""
    database, seen = assembly_of(worker).database, list[int]()
    run = database.run

    async def counted(function: Any, *args: Any, **kwargs: Any) -> Any:
        if function.__name__ == "report":
            seen.append(len(args[0]))
        return await run(function, *args, **kwargs)

    monkeypatch.setattr(database, "run", counted)
    return seen


WHERE: list[jobq.Handler[[], Any]] = [
    reporting_app.in_loop, reporting_app.in_thread, reporting_app.in_process, reporting_app.in_process_async,
]  # fmt: skip


async def test_a_checkpoint_right_before_a_failure_is_there_for_the_next_attempt(bench: Bench) -> None:
    async with bench.working(reporting_app.app, processes=1):
        ids = [bench.enqueue(handler.options(timeout=HOUR)) for handler in WHERE]
        jobs = {(job := await bench.until(id_)).kind: job for id_ in ids}

    assert len(jobs) == 4
    for kind, job in jobs.items():
        assert (job.state, job.outcome, job.attempt, job.failures) == (State.DONE, "ok: copied", 2, 1), kind
        assert job.progress == Progress(2 / 3, "page 2 of 3", 2), kind
        assert (job.checkpoint, job.result) == ({"page": 2}, {"page": 2}), kind
        assert job.meta["timeout"] == HOUR.total_seconds()  # what else stands in meta stays


async def test_reports_of_many_jobs_are_one_statement_and_the_last_ones_are_kept(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()

    @app.handler("k")
    async def handler() -> None:
        for n in range(1_000):
            jobq.current().progress(n / 1_000, str(n))
        await gate.pass_()
        jobq.current().progress(1, "all")

    async with bench.working(app, concurrency=10) as worker:
        writes = writes_of(worker, monkeypatch)
        ids = bench.enqueue_many(handler, 10)
        await gate.until_waiting(10)
        await eventually(lambda: all(job_says(bench, id_) == "999" for id_ in ids), "what they said last")
        assert len(writes) <= 4  # at once for the first that came, a second later for the others
        gate.open()
        done = [await bench.until(id_) for id_ in ids]

    assert [job.progress for job in done] == [Progress(1.0, "all", 1)] * 10
    assert sum(writes) <= 40


def job_says(bench: Bench, id_: int) -> str | None:
    progress = bench.job(id_).progress
    return None if progress is None else progress.message


async def test_nothing_is_written_while_nobody_reports(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.handler("k")
    async def handler() -> None: ...

    async with bench.working(app) as worker:
        writes = writes_of(worker, monkeypatch)
        await bench.until(bench.enqueue(handler))

    assert writes == []


async def test_what_is_kept_at_the_word_to_stop_survives_a_shutdown(bench: Bench, app: jobq.App) -> None:
    begun = Effects()

    @app.handler("k")
    async def handler() -> None:
        jobq.current().progress(0.7)
        begun.add(jobq.current().last_checkpoint)
        try:
            await anyio.sleep_forever()
        finally:
            jobq.current().checkpoint({"page": 7})

    async with bench.working(app, grace=timedelta(0)):
        id_ = bench.enqueue(handler)
        await begun.until(1)
        await eventually(lambda: bench.job(id_).progress, "a first report: the next one would come a second later")

    job = bench.job(id_)
    assert (job.state, job.failures, job.checkpoint) == (State.PENDING, 0, {"page": 7})


async def test_a_child_that_is_told_to_stop_can_still_keep_where_it_was(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    brief = reporting_app.reports.options(timeout=timedelta(seconds=1.5), max_attempts=1)
    async with bench.working(reporting_app.app, processes=1):
        timed_out = await bench.until(bench.enqueue(brief, str(mark)))

    assert timed_out.errors[0].error == "TimeoutError"
    assert (timed_out.checkpoint, timed_out.progress) == ({"told": True}, Progress(19_999 / 40_000, "step 19999", 1))


async def test_a_child_whose_job_was_cancelled_hears_so_at_its_checkpoint(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with bench.working(reporting_app.app, processes=1, lease=HOUR):
        await bench.until_listening()
        id_ = bench.enqueue(reporting_app.reports, str(mark))
        await eventually(mark.exists, "its start")
        with bench.connect() as connection:
            jobq.cancel(connection, id_, running=True)
        await eventually(Path(f"{mark}.lost").exists, "the LeaseLostError")

    assert bench.job(id_).checkpoint is None


async def test_f25_a_stale_attempt_changes_nothing_and_is_counted(bench: Bench, app: jobq.App) -> None:
    seen, gate, tick = Effects(), Gate(), threading.Event()
    bench.add_worker(5, HOUR, ran_out=-HOUR)

    @app.handler("k")
    def handler() -> None:
        gate.pass_in_thread()
        jobq.current().progress(0.9, "stale")  # is refused, and by that the worker learns that it has lost the job
        while not jobq.current().cancelled:
            tick.wait(0.005)
        try:
            jobq.current().checkpoint({"stale": True})
        except jobq.LeaseLostError as error:
            seen.add(str(error))

    async with bench.working(app, lease=HOUR) as worker:
        await bench.until_listening()
        id_ = bench.enqueue(handler)
        await gate.until_waiting()
        bench.change(id_, worker_id=5)
        gate.open()
        await seen.until(1)
        await eventually(lambda: worker.stats().lost == 1, "the count")
        assert worker.stats().refused == 1

    assert "attempt 1 counts no more" in seen.seen[0]
    job = bench.job(id_)
    assert (job.state, job.progress, job.checkpoint) == (State.RUNNING, None, None)


async def test_a_thread_that_is_left_behind_hears_at_its_checkpoint_that_it_counts_no_more(
    bench: Bench, app: jobq.App
) -> None:
    seen, gate = Effects(), Gate()

    @app.handler("k", timeout=timedelta(seconds=0.2), max_attempts=1)
    def handler() -> None:
        gate.pass_in_thread()
        try:
            jobq.current().checkpoint({"late": True})
        except jobq.LeaseLostError:
            seen.add("lost")

    async with bench.working(app) as worker:
        id_ = bench.enqueue(handler)
        await gate.until_waiting()
        job = await bench.until(id_)
        gate.open()
        await seen.until(1)
        await eventually(lambda: not worker.stats().left_behind, "its end")

    assert (job.state, bench.job(id_).checkpoint) == (State.DEAD, None)


async def test_a_locked_row_holds_up_its_own_reports_alone(bench: Bench, app: jobq.App) -> None:
    gate = Gate()

    @app.handler("k")
    async def handler(n: int) -> None:
        await gate.pass_()
        jobq.current().progress(n / 2, "now")
        await anyio.sleep_forever()

    async with bench.working(app, grace=timedelta(0)):
        locked, free = bench.enqueue(handler, 1), bench.enqueue(handler, 2)
        await gate.until_waiting(2)
        with bench.engine.begin() as connection:
            connection.execute(sa.select(jobs.c.id).where(jobs.c.id == locked).with_for_update())
            gate.open()
            await eventually(lambda: job_says(bench, free), "what the other one said")
            assert job_says(bench, locked) is None
        await eventually(lambda: job_says(bench, locked), "what this one said")


@both
async def test_what_is_reported_around_an_own_transaction_is_kept(bench: Bench, app: jobq.App, where: str) -> None:
    def before() -> None:
        jobq.current().progress(0.5, "before")
        jobq.current().checkpoint({"page": 1})

    def after() -> jobq.Ok:
        jobq.current().progress(1, "after")
        return jobq.Ok("paid", result=[1])

    @app.handler("loop", **LATER)
    async def in_loop() -> jobq.Ok:
        before()
        async with jobq.current().transaction():
            pass
        return after()

    @app.handler("thread", **LATER)
    def in_thread() -> jobq.Ok:
        before()
        with jobq.current().transaction():
            pass
        return after()

    async with bench.working(app) as worker:
        id_ = bench.enqueue(in_loop if where == "loop" else in_thread)
        await eventually(lambda: worker.stats().ok == 1, "its end")

    job = bench.job(id_)
    assert (job.state, job.outcome, job.result) == (State.DONE, "ok: paid", [1])
    assert (job.progress, job.checkpoint) == (Progress(1.0, "after", 1), {"page": 1})
    assert worker.stats().refused == 0


async def test_a_retry_by_hand_goes_on_where_a_dead_job_was_and_begins_a_done_one_anew(
    bench: Bench, app: jobq.App
) -> None:
    seen = Effects()

    @app.handler("k", max_attempts=1)
    async def handler(fails: bool) -> jobq.Ok:
        seen.add(jobq.current().last_checkpoint)
        jobq.current().checkpoint({"page": 1})
        if fails and len(seen) <= 2:
            raise ValueError("no")
        return jobq.Ok(result=1)

    async with bench.working(app):
        ids = [bench.enqueue(handler, fails) for fails in (True, False)]
        ended = [await bench.until(id_) for id_ in ids]
        assert [job.state for job in ended] == [State.DEAD, State.DONE]
        seen.seen.clear()
        seen.seen += ["dead", "done"]
        for id_ in ids:
            with bench.connect() as connection:
                jobq.retry(connection, id_)
            assert bench.job(id_).result is None
            await bench.until(id_, State.DONE)

    assert seen.seen == ["dead", "done", {"page": 1}, None]


async def test_a_replaced_job_forgets_the_checkpoint_and_a_rescheduled_one_keeps_it(
    bench: Bench, app: jobq.App
) -> None:
    @app.handler("k", retry=lambda failures, error: HOUR)
    async def handler(n: int) -> None:
        jobq.current().checkpoint({"n": n})
        raise ValueError("no")

    keyed = handler.options(unique_key="k")
    async with bench.working(app):
        id_ = bench.enqueue(keyed, 1)
        assert (await bench.until_retried(id_)).checkpoint == {"n": 1}
        bench.enqueue(keyed.options(on_conflict="reschedule", delay=2 * HOUR), 1)
        assert bench.job(id_).checkpoint == {"n": 1}
        bench.enqueue(keyed.options(on_conflict="replace"), 2)
        assert bench.job(id_).checkpoint is None
