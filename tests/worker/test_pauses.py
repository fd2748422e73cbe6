"""Queues that stand still: by hand, by a handler's word, by the errors that it raises."""

from __future__ import annotations

import urllib.error
from contextlib import AsyncExitStack
from datetime import timedelta
from email.message import Message
from typing import Any

import pytest
import sqlalchemy as sa
from bench import HOUR, NEVER, Bench, Effects, Gate, eventually, more_claims

import jobq
from jobq import State
from jobq.tables import queues

pytestmark = pytest.mark.anyio
SHORT = timedelta(seconds=1)  # longer than the looks that follow a notification


def pause_of(bench: Bench, queue: str = "default") -> tuple[bool, str | None]:
    """Whether a queue is paused, and why."""
    paused = sa.func.coalesce(queues.c.paused_until > sa.func.now(), sa.false())
    rows = bench.execute(sa.select(paused, queues.c.pause_reason).where(queues.c.name == queue))
    return (rows[0][0], rows[0][1]) if rows else (False, None)


def end_pause(bench: Bench, queue: str = "default") -> None:
    with bench.connect() as connection:
        assert jobq.resume(connection, queue)


async def test_a_handler_lets_its_queue_stand_still_and_the_job_goes_back(bench: Bench, app: jobq.App) -> None:
    seen = Effects()

    @app.handler("k")
    async def handler(n: int) -> None:
        seen.add(n)
        if n == 0:
            raise jobq.PauseQueue(HOUR, "out of credit")

    first = bench.enqueue(handler, 0)
    async with bench.working(app) as worker:
        await eventually(lambda: worker.stats().pause, "the pause")
        second = bench.enqueue(handler, 1)
        await bench.until(bench.enqueue(handler.options(queue="other"), 2))
        await more_claims(worker, 2)

    assert pause_of(bench) == (True, "out of credit")
    assert seen.seen == [0, 2]
    assert [(bench.job(id_).state, bench.job(id_).failures) for id_ in (first, second)] == [(State.PENDING, 0)] * 2


async def test_a_pause_holds_in_the_whole_fleet_and_outlives_a_restart(bench: Bench, app: jobq.App) -> None:
    handler: Any = app.handler("k")(lambda: None)
    other: Any = app.handler("other", queue="other")(lambda: None)
    async with bench.working(app) as worker:
        with bench.connect() as connection:
            assert jobq.pause(connection, "default", reason="the provider is down") is None
        id_ = bench.enqueue(handler)
        await bench.until(bench.enqueue(other))
        await more_claims(worker, 2)
    async with bench.working(app) as worker:
        await bench.until(bench.enqueue(other))
        await more_claims(worker, 2)
        assert bench.job(id_).attempt == 0
        assert pause_of(bench) == (True, "the provider is down")
        end_pause(bench)
        await bench.until(id_)


async def test_a_pause_ends_by_itself_and_the_fleet_wakes_up_for_it(bench: Bench, app: jobq.App) -> None:
    app.queue("f", fifo=True)
    handler: Any = app.handler("k")(lambda: None)
    async with bench.working(app, poll_interval=NEVER):
        await bench.until_listening()
        for queue in ("default", "f"):
            with bench.connect() as connection:
                until = jobq.pause(connection, queue, SHORT)
                id_ = jobq.enqueue(connection, handler.options(queue=queue)).id
            assert until is not None
            job = await bench.until(id_)
            assert job.attempted_at is not None
            assert job.attempted_at >= until


async def test_a_resumed_queue_starts_at_once_also_what_was_passed_meanwhile(bench: Bench, app: jobq.App) -> None:
    app.queue("f", fifo=True)
    handler: Any = app.handler("k")(lambda: None)
    async with bench.working(app, poll_interval=NEVER) as worker:
        await bench.until_listening()
        with bench.connect() as connection:
            for queue in ("default", "f"):
                jobq.pause(connection, queue)
        ids = [bench.enqueue(handler.options(queue=queue)) for queue in ("default", "f")]
        await more_claims(worker, 2)
        assert [bench.job(id_).attempt for id_ in ids] == [0, 0]
        for queue, id_ in zip(("default", "f"), ids, strict=True):
            end_pause(bench, queue)
            await bench.until(id_)


@pytest.mark.parametrize(("number", "limit"), [(1000, {}), (200, {"concurrency": 20})], ids=["plain", "limited"])
async def test_a9_twenty_handlers_that_pause_at_once_are_one_pause_and_one_event(
    bench: Bench, app: jobq.App, number: int, limit: dict[str, Any]
) -> None:
    gate, events = Gate(), Effects()
    app.on_error(events.add)
    app.queue("q", **limit)

    @app.handler("k", queue="q")
    async def handler() -> None:
        if gate.is_shut:
            await gate.pass_()
            raise jobq.PauseQueue(HOUR, "HTTP 401")

    ids = bench.enqueue_many(handler, number)
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(bench.working(app, concurrency=7)) for _ in range(3)]
        await gate.until_waiting(20)
        gate.open()
        await eventually(lambda: sum(worker.stats().pause for worker in workers) >= 20, "the pauses")
        paused_at = bench.execute(sa.select(queues.c.paused_at))[0][0]
        for worker in workers:
            await more_claims(worker, 2)
        late = "SELECT count(*) FROM jobq.all_jobs WHERE attempted_at > :at"
        assert bench.execute(late, at=paused_at + timedelta(seconds=1))[0][0] == 0
        assert [str(event.error) for event in events.seen] == ["HTTP 401"]
        assert not bench.execute("SELECT FROM jobq.jobs WHERE worker_id IS NOT NULL OR failures > 0")
        end_pause(bench, "q")
        states = await bench.until_all_ended()

    assert states == dict.fromkeys(ids, State.DONE)
    assert len(events) == 1


async def test_a_second_pause_makes_it_longer_and_never_shorter(bench: Bench, app: jobq.App) -> None:
    gate = Gate()

    @app.handler("k")
    async def handler(hours: int) -> None:
        await gate.pass_()
        raise jobq.PauseQueue(hours * HOUR, f"for {hours}")

    for hours in (2, 3, 1):
        bench.enqueue(handler, hours)
    async with bench.working(app) as worker:
        await gate.until_waiting(3)
        gate.open()
        await eventually(lambda: worker.stats().pause == 3, "three pauses")

    assert pause_of(bench) == (True, "for 3")


class Response:
    status_code = 403


class ClientError(Exception):
    """As httpx and requests raise it."""

    def __init__(self) -> None:
        super().__init__("403 Forbidden")
        self.response = Response()


class SessionError(Exception):
    """As aiohttp raises it."""

    status = 401


ERRORS = {
    "httpx, requests": ClientError(),
    "aiohttp": SessionError("401"),
    "urllib": urllib.error.HTTPError("http://a", 401, "Unauthorized", Message(), None),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
async def test_an_http_status_pauses_the_queue_and_the_job_runs_later(
    bench: Bench, app: jobq.App, error: Exception
) -> None:
    events, seen = Effects(), Effects()
    app.on_error(events.add)
    app.queue("q", fifo=True, pause_on=jobq.http_status({401, 403}, HOUR))

    @app.handler("k", queue="q", max_attempts=1)
    async def handler() -> None:
        seen.add(1)
        if len(seen) == 1:
            raise error

    id_ = bench.enqueue(handler)
    async with bench.working(app) as worker:
        await eventually(lambda: worker.stats().pause, "the pause")
        paused, reason = pause_of(bench, "q")
        assert paused
        assert reason in ("HTTP 401", "HTTP 403")
        assert [type(event.error) for event in events.seen] == [jobq.PauseQueue]
        assert events.seen[0].error.__cause__ is error
        assert not events.seen[0].final
        end_pause(bench, "q")
        assert (await bench.until(id_)).failures == 0


@pytest.mark.parametrize("answer", [None, SyntaxError("broken"), "an hour"], ids=["none", "raises", "a text"])
async def test_errors_that_are_no_reason_to_pause_fail_as_ever(bench: Bench, app: jobq.App, answer: Any) -> None:
    events = Effects()
    app.on_error(events.add)

    def pause_on(error: BaseException) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    app.queue("q", pause_on=pause_on)

    @app.handler("k", queue="q", max_attempts=1)
    async def handler() -> None:
        raise LookupError("no such user")

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler))

    assert job.outcome == "err: LookupError: no such user"
    assert type(events.seen[-1].error) is LookupError
    assert len(events) == (1 if answer is None else 2)
    assert pause_of(bench, "q") == (False, None)


async def test_on_a_pause_of_a_thread_the_rest_goes_on(bench: Bench, app: jobq.App) -> None:
    app.queue("q", concurrency=2)

    @app.handler("k", queue="q")
    def handler() -> None:
        raise jobq.PauseQueue(HOUR)

    other: Any = app.handler("other")(lambda: None)
    id_ = bench.enqueue(handler)
    async with bench.working(app) as worker:
        await eventually(lambda: worker.stats().pause, "the pause")
        await bench.until(bench.enqueue(other))

    assert bench.job(id_).state is State.PENDING
    assert bench.execute("SELECT count(worker_id) FROM jobq.slots")[0][0] == 0
    assert pause_of(bench, "q") == (True, None)
