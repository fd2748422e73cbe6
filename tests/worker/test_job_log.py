"""One line a job, with fields for machines, and not so many that the log drowns."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from bench import Bench

import jobq

pytestmark = pytest.mark.anyio


def lines(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [record for record in caplog.records if record.name == "jobq.job" and hasattr(record, "job_id")]


async def test_a_jobs_line_carries_its_fields(bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "jobq")
    handler: Any = app.handler("email.send", queue="email")(lambda: "sent\nto \x1b[31m everybody")

    async with bench.working(app) as worker:
        id_ = bench.enqueue(handler)
        await bench.until(id_)
        worker_id = worker.stats().worker_id

    (line,) = lines(caplog)
    assert (line.levelno, line.queue, line.kind, line.job_id, line.attempt) == (
        logging.INFO, "email", "email.send", id_, 1,
    )  # fmt: skip
    assert (line.outcome, line.worker_id) == ("ok: sent\nto \x1b[31m everybody", worker_id)
    assert 0 <= line.wait < 60
    assert 0 <= line.duration < 60
    assert line.getMessage().startswith(f"email email.send {id_} attempt 1: ok: sent to  [31m everybody (waited ")


async def test_failures_are_warnings_and_deaths_are_errors(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jobq")
    handler: Any = app.handler("k", max_attempts=2, retry=lambda failures, error: timedelta(0))(lambda: 1 / 0)

    async with bench.working(app):
        await bench.until(bench.enqueue(handler))

    assert [(line.levelno, line.attempt) for line in lines(caplog)] == [(logging.WARNING, 1), (logging.ERROR, 2)]
    assert all(line.outcome == "err: ZeroDivisionError: division by zero" for line in lines(caplog))


async def test_above_a_hundred_a_second_good_ends_are_debug_and_that_is_said_once(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "jobq")

    @app.handler("k")
    async def handler() -> None: ...

    bench.enqueue_many(handler, 1000)
    async with bench.working(app, concurrency=1000):
        await bench.until_all_ended()

    levels = [line.levelno for line in lines(caplog)]
    said = [record for record in caplog.records if "logged at DEBUG" in record.getMessage()]
    assert len(levels) == 1000
    assert set(levels) == {logging.INFO, logging.DEBUG}
    assert levels.count(logging.INFO) < 1000
    assert [record.levelno for record in said] == [logging.INFO]
