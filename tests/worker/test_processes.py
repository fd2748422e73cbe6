"""Handlers with executor="process": what crosses, what is said, and what is refused."""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import timedelta
from typing import Any

import anyio
import process_app
import psutil
import pytest
from bench import Bench, Run, eventually
from offspring import children
from process_app import app

import jobq
from jobq import State

pytestmark = pytest.mark.anyio


async def test_args_and_results_cross_as_they_are(bench: Bench) -> None:
    async with bench.working(app, processes=1):
        order = process_app.Order(7, ["ä", "\u2028", "'"])
        plain = await bench.until(bench.enqueue(process_app.answer, order, timedelta(seconds=1.5)))
        loop = await bench.until(bench.enqueue(process_app.async_answer, name="Ann"))

    assert plain.outcome is not None
    pid = int(plain.outcome.rpartition(" ")[2])
    assert plain.outcome == f"ok: 7 {order.notes} 0:00:01.500000 ['around'] in {pid}"
    assert loop.outcome == f"skip: Ann ['around'] in {pid}"
    assert not psutil.pid_exists(pid)


async def test_the_context_is_that_of_the_job_without_the_workers_state(bench: Bench) -> None:
    async with bench.working(app, processes=1):
        job = await bench.until(bench.enqueue(process_app.about))

    assert job.outcome == "ok: about 1 True None False"


NAMES = {
    "declined": ("process_app.Declined", "declined: no money"),
    "key": ("KeyError", "'k'"),
    "exit": ("SystemExit", "3"),
    "interrupt": ("KeyboardInterrupt", ""),
    "generator_exit": ("GeneratorExit", ""),
    "stop": ("StopIteration", "one"),
    "exotic": ("process_app.Exotic", "rare"),
    "group": ("ExceptionGroup", "two (2 sub-exceptions)"),
    "permanent": ("jobq.outcomes.Permanent", "no recipient"),
}


async def test_f33_what_is_raised_has_its_class_and_text_and_where_it_was(bench: Bench) -> None:
    async with bench.working(app, processes=1) as worker:
        ids = {what: bench.enqueue(process_app.raises, what) for what in NAMES}
        permanent = await bench.until(ids.pop("permanent"))
        jobs = {what: await bench.until_retried(id_) for what, id_ in ids.items()}
        await eventually(lambda: worker.stats().dead == 1, "the count")
        assert worker.stats().left_behind == 0

    assert (permanent.state, permanent.failures) == (State.DEAD, 1)
    for what, job in {**jobs, "permanent": permanent}.items():
        assert (job.errors[0].error, job.errors[0].message) == NAMES[what]
        assert "raise RAISED[what]" in str(job.errors[0].traceback)
        assert "jobq/child" not in str(job.errors[0].traceback)


async def test_signals_cross_with_what_they_say(bench: Bench) -> None:
    async with bench.working(app, processes=1) as worker:
        snoozed = bench.enqueue(process_app.raises, "snooze")
        await bench.until(bench.enqueue(process_app.good))
        paused = bench.enqueue(process_app.raises.options(queue="other"), "pause")
        await eventually(lambda: (worker.stats().snooze, worker.stats().pause) == (1, 1), "both ends")

    job = bench.job(snoozed)
    assert (job.state, job.failures, bench.job(paused).failures) == (State.PENDING, 0, 0)
    assert job.run_at - job.created_at > timedelta(hours=1.9)


async def test_policies_see_the_class_and_the_attributes_of_the_error(bench: Bench) -> None:
    async with bench.working(app, processes=1):
        retried = await bench.until_retried(bench.enqueue(process_app.by_error))
        final = await bench.until(bench.enqueue(process_app.final))

    assert retried.run_at - retried.created_at > timedelta(minutes=50)
    assert (final.state, final.failures) == (State.DEAD, 1)


async def test_what_a_child_prints_and_logs_is_in_the_workers_log_with_the_jobs_id(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with bench.working(app, processes=1):
        id_ = bench.enqueue(process_app.talks)
        await bench.until(id_)

    told = f"job {id_} (talks): "
    records = {
        record.getMessage().removeprefix(told): record
        for record in caplog.records
        if record.getMessage().startswith(told)
    }
    printed = {text for text, record in records.items() if record.name == "jobq.output"}
    assert printed == {"printed", "complained", "from a program", "without an end"}
    assert {text for text, record in records.items() if record.name == "shop"} == {"logged well", "trouble"}
    logged: Any = records["logged well"]
    assert (logged.levelname, logged.job_id, logged.kind, logged.order) == ("WARNING", id_, "talks", 7)
    assert "ValueError: seen" in str(records["trouble"].exc_text)


async def test_megabytes_of_output_are_cut_and_counted(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with bench.working(app, processes=1):
        job = await bench.until(bench.enqueue(process_app.floods, 4))

    lines = [record.getMessage() for record in caplog.records if record.name == "jobq.output"]
    assert job.state is State.DONE
    assert len(lines) == 1025
    assert re.fullmatch(rf"job {job.id} \(floods\): printed {3 << 20} bytes more, that are not logged", lines[-1])


async def test_no_handler_for_processes_no_child(bench: Bench, app: jobq.App) -> None:
    handler: Any = app.handler("k")(lambda: None)

    async with bench.working(app):
        await bench.until(bench.enqueue(handler))
        assert children() == set()


def test_an_app_that_no_child_could_import_is_refused(app: jobq.App) -> None:
    app.handler("k", executor="process")(lambda: None)

    with pytest.raises(jobq.WorkerError, match=r'app_path="module:attribute"'):
        jobq.Worker(app, "postgresql://127.0.0.1/any")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        pytest.param("process_app:app", "no handler for k where a child process imports process_app:app", id="local"),
        pytest.param("process_app:good", "it is of type Handler, not a jobq.App", id="no_app"),
        pytest.param("nowhere:app", "ModuleNotFoundError: No module named 'nowhere'", id="nowhere"),
    ],
)
async def test_handlers_that_a_child_does_not_find_end_the_worker_at_its_start(
    bench: Bench, app: jobq.App, path: str, said: str
) -> None:
    app.handler("k", executor="process")(lambda: None)

    with pytest.raises(jobq.WorkerError, match=re.escape(said)):
        async with bench.working(app, app_path=path):
            pass
    assert children() == set()


async def test_a_child_has_the_environment_and_the_path_of_the_worker(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/one:/two")
    async with bench.working(app, processes=1):
        job = await bench.until(bench.enqueue(process_app.surroundings))

    assert job.outcome is not None
    assert json.loads(job.outcome.removeprefix("ok: ")) == ["/one:/two", sys.path[-1]]


async def test_a_worker_that_is_stopped_while_its_first_child_imports_ends_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMPORT_HANGS", "1")
    worker = jobq.Worker(app, bench.url, processes=1)
    run = Run(worker)
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await eventually(children, "the child")
        worker.stop()
        assert await run.end() == 0

    assert children() == set()
