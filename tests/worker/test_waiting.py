"""`jobq.wait_for(...)`: told by the worker that records the end, and by looking where nothing can be heard."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from bench import NEVER, Bench, Gate, assembly_of, eventually
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

import jobq
from jobq import State, waiting
from jobq.notify import channel_of_end
from jobq.worker.awaited import MOST, Awaited

pytestmark = pytest.mark.anyio
LONG = timedelta(seconds=30)


async def waited(bench: Bench, id_: int, answers: list[jobq.Job]) -> None:
    answers.append(await jobq.wait_for_async(bench.engine, id_, timeout=LONG))


def listens(bench: Bench) -> bool:
    """Whether somebody waits and hears: it has said so, and looks again only in an hour's time."""
    asked = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'jobq wait'"
    return bool(bench.execute(f"{asked} AND state = 'idle' AND query LIKE '%all_jobs%'"))


async def test_whoever_waits_is_told_of_the_end(bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "FIRST_PAUSE_SECONDS", 3600.0)  # only being told ends this wait in time
    monkeypatch.setattr(waiting, "LEAST_PAUSE_SECONDS", 0.0)
    gate, answers = Gate(), list[jobq.Job]()

    @app.handler("k")
    async def handler() -> jobq.Ok:
        await gate.pass_()
        return jobq.Ok("sent", result={"to": 7})

    async with bench.working(app, poll_interval=NEVER) as worker:
        await bench.until_listening()
        id_ = bench.enqueue(handler)
        await gate.until_waiting()
        async with anyio.create_task_group() as group:
            group.start_soon(waited, bench, id_, answers)
            await eventually(lambda: listens(bench) and assembly_of(worker).awaited.number, "the word of the wait")
            gate.open()

    assert [(job.id, job.state, job.outcome, job.result) for job in answers] == [
        (id_, State.DONE, "ok: sent", {"to": 7})
    ]
    await eventually(lambda: not listens(bench), "the end of its connection")


async def test_a_wait_that_began_before_the_job_was_claimed_is_told_too(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "FIRST_PAUSE_SECONDS", 3600.0)
    monkeypatch.setattr(waiting, "LEAST_PAUSE_SECONDS", 0.0)
    answers = list[jobq.Job]()

    @app.handler("k", max_attempts=1)
    async def handler() -> None:
        raise ValueError("no")

    async with bench.working(app, poll_interval=NEVER) as worker:
        await bench.until_listening()
        id_ = bench.enqueue(handler.options(delay=timedelta(hours=1)))
        async with anyio.create_task_group() as group:
            group.start_soon(waited, bench, id_, answers)
            await eventually(lambda: listens(bench) and assembly_of(worker).awaited.number, "the word of the wait")
            bench.make_due(id_)
            bench.execute("NOTIFY jobq, 'default|1|0'")

    assert [(job.state, job.outcome) for job in answers] == [(State.DEAD, "err: ValueError: no")]


@pytest.mark.parametrize("deaf", ["switched off", "behind a pooler"])
async def test_where_nothing_can_be_heard_it_looks(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch, deaf: str
) -> None:
    if deaf == "switched off":
        monkeypatch.setenv("JOBQ_NOTIFY", "0")
    else:
        monkeypatch.setattr(sa.func, "pg_backend_pid", lambda: sa.literal(1))  # as a pooler's process ids differ

    @app.handler("k")
    async def handler() -> str:
        await anyio.sleep(0.05)
        return "sent"

    async with bench.working(app):
        job = await jobq.wait_for_async(bench.url, bench.enqueue(handler), timeout=LONG)

    assert (job.state, job.outcome) == (State.DONE, "ok: sent")


@pytest.mark.parametrize("form", ["engine", "async engine", "asyncpg", "url"])
async def test_any_engine_or_url_will_do_and_an_ended_job_is_given_at_once(bench: Bench, form: str) -> None:
    id_ = bench.add("k")
    with bench.connect() as connection:
        jobq.cancel(connection, id_)
    url = sa.make_url(bench.url)
    engines: dict[str, Any] = {
        "engine": lambda: bench.engine,
        "async engine": lambda: create_async_engine(url),
        "asyncpg": lambda: create_async_engine(url.set(drivername="postgresql+asyncpg")),
        "url": lambda: bench.url,
    }

    job = await jobq.wait_for_async(engines[form](), id_)

    assert (job.state, job.outcome) == (State.CANCELLED, "err: cancelled")


async def test_the_time_is_kept_also_while_the_table_is_locked(bench: Bench) -> None:
    id_ = bench.add("k")

    with pytest.raises(jobq.WaitTimeoutError, match=f"job {id_} is still pending after 0:00:01") as late:
        await jobq.wait_for_async(bench.engine, id_, timeout=timedelta(seconds=1))
    assert (late.value.id, late.value.state, isinstance(late.value, TimeoutError)) == (id_, "pending", True)

    with bench.engine.begin() as connection:
        connection.execute(sa.text("LOCK TABLE jobq.jobs IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(jobq.WaitTimeoutError, match="could not be looked at"):
            await jobq.wait_for_async(bench.engine, id_, timeout=timedelta(seconds=0.3))


async def test_a_job_that_is_not_committed_cannot_be_waited_for(bench: Bench) -> None:
    with bench.engine.begin() as connection:
        id_ = jobq.enqueue(connection, jobq.kind("k", queue="q")).id
        with pytest.raises(jobq.UnknownJobError, match="not committed yet"):
            await jobq.wait_for_async(bench.engine, id_, timeout=LONG)


def test_a_session_is_refused_with_the_reason(bench: Bench) -> None:
    wrong: list[Any] = [Session(bench.engine), bench.engine.connect(), None, 7]
    try:
        for each in wrong:
            with pytest.raises(jobq.BindError, match=r"takes an Engine or a URL.*commit, then wait"):
                jobq.wait_for(each, 1)
            with pytest.raises(jobq.BindError, match="takes an Engine or a URL"):
                jobq.wait_for_async(each, 1)
    finally:
        wrong[1].close()
    with pytest.raises(jobq.OptionTypeError, match="timeout"):
        jobq.wait_for(bench.engine, 1, timeout=5)  # type: ignore[arg-type]
    with pytest.raises(jobq.UnknownJobError):
        jobq.wait_for(bench.engine, 1)


async def test_it_does_not_block_an_event_loop(bench: Bench, app: jobq.App) -> None:
    with pytest.raises(jobq.ContextError, match=r"await jobq\.wait_for_async"):
        jobq.wait_for(bench.engine, 1)

    @app.handler("k")
    async def handler() -> str:
        return "sent"

    async with bench.working(app):
        id_ = bench.enqueue(handler)
        job = await anyio.to_thread.run_sync(lambda: jobq.wait_for(bench.engine, id_, timeout=LONG))

    assert job.outcome == "ok: sent"


async def test_a_worker_remembers_a_bounded_number_of_waits_for_a_while(bench: Bench) -> None:
    now = [0.0]
    awaited = Awaited(None, None, stop=anyio.Event(), clock=lambda: now[0])  # type: ignore[arg-type]

    for id_ in range(MOST + 50):  # anybody may notify
        awaited.add(id_)
    assert awaited.number == MOST

    now[0] = math.nextafter(60.0, 61.0)
    awaited.add(1)
    assert awaited.number == 1
    assert channel_of_end(2**63 - 1) == "jobq_ended_9223372036854775807"  # far below 63 characters
