"""Results: a JSON value beside the outcome, `jobq.Ok("sent", result={...})`, bounded, kept with the ended job."""

from __future__ import annotations

from typing import Any

import pytest
import reporting_app
from bench import HOUR, Bench

import jobq
from jobq import State

pytestmark = pytest.mark.anyio
VALUES = [0, False, "ä \u2028", {"rows": [1, None, {"a": 1.5}]}, [], 10**30]


async def test_a_result_is_read_back_as_it_was_given(bench: Bench) -> None:
    async with bench.working(reporting_app.app, processes=1):
        for handler, outcome in [(reporting_app.gives, "ok"), (reporting_app.gives_in_process, "skip: had it")]:
            jobs = [await bench.until(bench.enqueue(handler, value)) for value in VALUES]

            assert [job.result for job in jobs] == VALUES
            assert [type(job.result) for job in jobs] == [type(value) for value in VALUES]
            assert {job.outcome for job in jobs} == {outcome}


async def test_most_jobs_have_none(bench: Bench, app: jobq.App) -> None:
    @app.handler("k")
    async def handler(n: int) -> str | jobq.Ok | None:
        return [None, "text", jobq.Ok("text"), jobq.Ok(result=3)][n]  # type: ignore[return-value]

    async with bench.working(app, concurrency=10):
        ids = [bench.enqueue(handler, n) for n in range(4)]
        assert [(await bench.until(id_)).result for id_ in ids] == [None, None, None, 3]

    null = bench.execute("SELECT count(*) FROM jobq.finished_jobs WHERE result IS NULL")
    assert null[0][0] == 3  # SQL's NULL, not the JSON word


async def test_a_result_that_is_too_large_ends_the_job_where_it_is_made_and_is_not_retried(bench: Bench) -> None:
    async with bench.working(reporting_app.app, processes=1) as worker:
        ids = [bench.enqueue(handler) for handler in (reporting_app.large_in_loop, reporting_app.large_in_process)]
        jobs = [await bench.until(id_) for id_ in ids]

    said = "result: 70,002 bytes of JSON, the limit is 65,536: store the data, keep its key here"
    for job in jobs:
        assert (job.state, job.attempt, job.result) == (State.DEAD, 1, None)
        assert (job.errors[0].error, job.errors[0].message) == ("jobq.errors.ArgsError", said)
        assert "result=" in str(job.errors[0].traceback)  # it shows the line
    assert worker.stats().dead == 2


async def test_an_outcome_of_the_users_own_that_breaks_its_result_is_no_reason_to_lose_the_job(
    bench: Bench, app: jobq.App
) -> None:
    class Odd(jobq.Ok):
        def __init__(self, result: Any) -> None:
            self.text = "odd"
            self.result_json = result

    @app.handler("k", retry=lambda failures, error: HOUR, max_attempts=1)
    async def handler(n: int) -> jobq.Ok:
        return Odd([{1: 2}, "no json"][n])

    async with bench.working(app):
        jobs = [await bench.until(bench.enqueue(handler, n)) for n in range(2)]

    assert [job.state for job in jobs] == [State.DEAD, State.DEAD]
    assert "returns None, a str or an Outcome" in jobs[0].errors[0].message
    assert "could not be stored: SQLSTATE 22P02" in jobs[1].errors[0].message
