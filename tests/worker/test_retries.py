"""Failed attempts: when the next one comes, how many there are, and what is kept of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import anyio
import pytest
from bench import HOUR, Bench, Effects, Gate, eventually

import jobq
from jobq import State

pytestmark = pytest.mark.anyio

AT_ONCE = {"retry": lambda failures, error: timedelta(0)}


def failing() -> None:
    raise ValueError("no")


async def test_f16_the_retry_time_counts_from_the_failure(bench: Bench, app: jobq.App) -> None:
    gate = Gate()

    @app.handler("k", retry=lambda failures, error: HOUR)
    async def handler() -> None:
        await gate.pass_()
        raise ValueError("no")

    async with bench.working(app):
        id_ = bench.enqueue(handler)
        await gate.until_waiting()
        gate.open()
        job = await bench.until_retried(id_)

    assert job.run_at == job.errors[0].at + HOUR
    assert job.attempted_at is not None
    assert job.attempted_at < job.errors[0].at


async def test_the_backoff_grows_with_the_failures(bench: Bench, app: jobq.App) -> None:
    app.handler("k", max_attempts=20, retry=jobq.Exponential(base=timedelta(seconds=8)))(failing)
    ids = [bench.add("k", failures=failures) for failures in (0, 1, 2)]

    async with bench.working(app):
        jobs = [await eventually(lambda id_=id_: _failed_again(bench, id_), "a failure") for id_ in ids]

    waits = [(job.run_at - job.errors[0].at).total_seconds() for job in jobs]
    assert all(step / 2 <= wait <= step for wait, step in zip(waits, (8, 16, 32), strict=True))


def _failed_again(bench: Bench, id_: int) -> jobq.Job | None:
    return job if (job := bench.job(id_)).errors else None


class CardDeclined(Exception): ...


class CardStolen(CardDeclined): ...


async def test_what_no_retry_would_mend_is_dead_at_once(bench: Bench, app: jobq.App) -> None:
    @app.handler("charge", no_retry_on=(CardDeclined,))
    def charge(card: str) -> None:
        raise CardStolen("no") if card == "stolen" else OSError("away")

    @app.handler("wait", no_retry_on=(TimeoutError,), timeout=timedelta(milliseconds=50))
    async def wait() -> None:
        await anyio.sleep_forever()

    async with bench.working(app):
        for id_ in (bench.enqueue(charge, "stolen"), bench.enqueue(wait)):
            job = await bench.until(id_)
            assert (job.state, job.failures, job.attempt) == (State.DEAD, 1, 1)
        await bench.until_retried(bench.enqueue(charge, "new"))


async def test_the_policy_may_depend_on_the_error(bench: Bench, app: jobq.App) -> None:
    policy = jobq.ByError({LookupError: lambda failures, error: HOUR, OSError: None})

    def handler(name: str) -> None:
        raise {"key": KeyError, "file": FileNotFoundError, "value": ValueError}[name](name)

    registered = app.handler("k", retry=policy)(handler)

    async with bench.working(app):
        ids = {name: bench.enqueue(registered, name) for name in ("key", "file", "value")}
        key, value = [await bench.until_retried(ids[name]) for name in ("key", "value")]
        file = await bench.until(ids["file"])

    assert key.run_at - key.errors[0].at == HOUR
    assert timedelta(0) < value.run_at - value.errors[0].at <= timedelta(seconds=2)
    assert (file.state, file.failures) == (State.DEAD, 1)


@pytest.mark.parametrize(
    "answer", [5, timedelta(days=-1), timedelta.max, RuntimeError("broken"), SystemExit(3)], ids=repr
)
async def test_a_policy_that_makes_no_sense_gives_way_to_the_default(bench: Bench, app: jobq.App, answer: Any) -> None:
    def policy(failures: int, error: BaseException) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    handler = app.handler("k", retry=policy)(failing)

    async with bench.working(app):
        job = await bench.until_retried(bench.enqueue(handler))

    assert timedelta(seconds=1) <= job.run_at - job.errors[0].at <= timedelta(seconds=2)


async def test_a_job_out_of_attempts_is_dead_with_its_whole_history(bench: Bench, app: jobq.App) -> None:
    @app.handler("k", max_attempts=3, **AT_ONCE)
    def handler() -> None:
        attempt = jobq.current().job.attempt
        raise [ValueError, KeyError, jobq.JobqError][attempt - 1](f"failed {attempt}")

    async with bench.working(app, name="w1") as worker:
        job = await bench.until(bench.enqueue(handler))

    assert (job.state, job.attempt, job.failures) == (State.DEAD, 3, 3)
    assert job.outcome == "err: jobq.errors.JobqError: failed 3"
    assert [error.error for error in job.errors] == ["ValueError", "KeyError", "jobq.errors.JobqError"]
    assert [error.message for error in job.errors] == ["failed 1", "'failed 2'", "failed 3"]
    assert [(error.attempt, error.worker) for error in job.errors] == [(1, "w1"), (2, "w1"), (3, "w1")]
    assert all(
        f"line {handler.function.__code__.co_firstlineno + 3}, in handler" in str(e.traceback) for e in job.errors
    )
    assert sorted(error.at for error in job.errors) == [error.at for error in job.errors]
    assert (worker.stats().retry, worker.stats().dead) == (2, 1)


async def test_the_history_is_bounded(bench: Bench, app: jobq.App) -> None:
    def handler(depth: int = 200) -> None:
        if depth == 0:
            raise ValueError("x" * 100_000)
        handler(depth - 1)

    app.handler("k", max_attempts=99, retry=lambda failures, error: HOUR)(handler)
    old = {"attempt": 0, "at": "2030-01-01T00:00:00Z", "worker": "w", "error": "E", "message": "", "traceback": None}
    id_ = bench.add("k", failures=30, errors=[{**old, "attempt": n} for n in range(1, 26)])

    async with bench.working(app):
        job = await eventually(lambda: job if (job := bench.job(id_)).failures == 31 else None, "the failure")

    assert [error.attempt for error in job.errors] == [*range(2, 26), 1]
    assert len(job.errors[-1].message) < 2_200
    assert len(job.errors[-1].traceback or "") < 17_000


@pytest.mark.parametrize("how", ["kind", "sql"])
async def test_a_job_without_max_attempts_has_as_many_as_the_handler_says(
    bench: Bench, app: jobq.App, how: str
) -> None:
    app.handler("k", max_attempts=2, **AT_ONCE)(failing)
    id_ = bench.enqueue(jobq.kind("k", queue="default")) if how == "kind" else bench.add("k")

    async with bench.working(app):
        job = await bench.until(id_)

    assert (job.state, job.attempt, job.failures, job.max_attempts) == (State.DEAD, 2, 2, None)


async def test_a_jobs_own_max_attempts_wins_over_the_handlers(bench: Bench, app: jobq.App) -> None:
    seen = Effects()

    @app.handler("k", max_attempts=9, **AT_ONCE)
    def handler() -> None:
        job = jobq.current().job
        seen.add((job.attempt, job.failures, job.max_attempts, job.is_last))
        raise ValueError("no")

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler.options(max_attempts=2)))

    assert job.state is State.DEAD
    assert seen.seen == [(1, 0, 2, False), (2, 1, 2, True)]


async def test_f13_a_high_number_of_failures_is_written_as_any_other(bench: Bench, app: jobq.App) -> None:
    app.handler("k")(failing)
    id_ = bench.add("k", failures=5000, max_attempts=10_000)

    async with bench.working(app):
        job = await eventually(lambda: _failed_again(bench, id_), "the failure")

    assert (job.state, job.failures) == (State.PENDING, 5001)
    assert timedelta(minutes=5) <= job.run_at - job.errors[0].at <= timedelta(minutes=10)


async def test_f15_a_hundred_snoozes_use_no_attempt(bench: Bench, app: jobq.App) -> None:
    @app.handler("k", max_attempts=2)
    async def handler() -> None:
        if jobq.current().job.attempt <= 100:
            raise jobq.Snooze(timedelta(0))
        raise ValueError("no")

    async with bench.working(app, poll_interval=timedelta(milliseconds=10)) as worker:
        job = await bench.until_retried(bench.enqueue(handler))

    assert (job.attempt, job.failures, job.max_attempts, len(job.errors)) == (101, 1, 2, 1)
    assert timedelta(seconds=1) <= job.run_at - job.errors[0].at <= timedelta(seconds=2)
    assert worker.stats().snooze == 100


async def test_f17_a_retry_keeps_created_at_and_counts_as_scheduled(bench: Bench, app: jobq.App) -> None:
    handler = app.handler("k", retry=lambda failures, error: HOUR)(failing)

    async with bench.working(app):
        id_ = bench.enqueue(handler)
        created_at = bench.job(id_).created_at
        await bench.until_retried(id_)
        bench.make_due(id_)
        job = await bench.until(id_, State.PENDING, attempt=2)

    with bench.connect() as connection:
        (queue,) = jobq.stats(connection).queues
    assert (job.failures, job.created_at) == (2, created_at)
    assert (queue.scheduled, queue.ready, queue.oldest_due) == (1, 0, None)


async def test_f18_a_dead_job_retried_by_hand_runs_again_and_keeps_its_history(bench: Bench, app: jobq.App) -> None:
    broken, gate = [True], Gate()

    @app.handler("k", max_attempts=2, **AT_ONCE)
    async def handler() -> None:
        if broken:
            raise ValueError("no")
        await gate.pass_()

    async with bench.working(app):
        id_ = bench.enqueue(handler)
        assert (await bench.until(id_)).state is State.DEAD
        broken.clear()
        with bench.connect() as connection:
            assert jobq.retry(connection, id_).ids == (id_,)
        await gate.until_waiting()
        with bench.connect() as connection, pytest.raises(jobq.NotEndedError):
            jobq.retry(connection, id_)
        gate.open()
        job = await bench.until(id_)

    assert (job.state, job.attempt, job.failures) == (State.DONE, 3, 0)
    assert [error.attempt for error in job.errors] == [1, 2]
