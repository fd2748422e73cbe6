"""The pace of limited queues, and what broken throttles do."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import anyio.lowlevel
import pytest
import sqlalchemy as sa
from bench import HOUR, NEVER, Bench, Effects, eventually, more_claims

import jobq
from jobq import State
from jobq.tables import slots

pytestmark = pytest.mark.anyio
PACE = timedelta(milliseconds=80)


def ready_in(bench: Bench) -> timedelta:
    """How long the queue still waits."""
    return bench.execute(sa.select(sa.func.max(slots.c.ready_at) - sa.func.now()))[0][0]  # type: ignore[no-any-return]


async def test_a_queue_keeps_its_pace_in_the_whole_fleet(bench: Bench, app: jobq.App) -> None:
    starts = Effects()
    app.queue("q", fifo=True, throttle=jobq.per_minute(timedelta(minutes=1) / PACE))

    @app.handler("k", queue="q")
    async def handler() -> None:
        starts.add(bench.job(jobq.current().job.id).attempted_at)

    bench.enqueue_many(handler, 8)
    async with bench.working(app), bench.working(app):
        await bench.until_all_ended()

    steps = [later - earlier for earlier, later in pairwise(starts.seen)]
    assert min(steps) > PACE * 0.9


async def test_a_worker_looks_again_when_a_slot_is_ready(bench: Bench, app: jobq.App) -> None:
    app.queue("q", fifo=True, throttle=lambda outcome, error, elapsed: PACE)
    handler: Any = app.handler("k", queue="q")(lambda: None)

    ids = bench.enqueue_many(handler, 5)
    async with bench.working(app, poll_interval=NEVER, listen=False):
        await bench.until(ids[-1])


async def test_a_worker_learns_from_its_claim_when_a_slot_of_another_worker_is_ready(
    bench: Bench, app: jobq.App
) -> None:
    app.queue("q", fifo=True)
    handler: Any = app.handler("k", queue="q")(lambda: None)
    bench.execute("INSERT INTO jobq.queues (name, fifo) VALUES ('q', true)")
    bench.execute("INSERT INTO jobq.slots (queue, n, ready_at) VALUES ('q', 1, now() + interval '300 ms')")
    id_ = bench.enqueue(handler)

    async with bench.working(app, poll_interval=NEVER, listen=False):
        await bench.until(id_)


async def test_the_throttle_is_told_how_each_job_ended(bench: Bench, app: jobq.App) -> None:
    told = Effects()

    def throttle(outcome: str, error: BaseException | None, elapsed: timedelta) -> timedelta:
        told.add((outcome, type(error).__name__, elapsed > timedelta(0)))
        return timedelta(0)

    app.queue("q", fifo=True, throttle=throttle)

    @app.handler("k", queue="q", max_attempts=1)
    async def handler(n: int) -> jobq.Outcome | str | None:
        if n == 3:
            raise ValueError("429 Too Many Requests")
        if n == 4 and jobq.current().job.attempt == 1:
            raise jobq.Snooze(timedelta(0))
        return [None, "sent", jobq.Fail("no such user"), None, None][n]

    for n in range(5):
        bench.enqueue(handler, n)
    async with bench.working(app):
        await bench.until_all_ended()

    assert told.seen == [
        ("ok", "NoneType", True),
        ("ok: sent", "NoneType", True),
        ("fail: no such user", "NoneType", True),
        ("err: ValueError: 429 Too Many Requests", "ValueError", True),
        ("snooze", "Snooze", True),
        ("ok", "NoneType", True),
    ]


async def test_a_backoff_by_outcome_replaces_the_pace(bench: Bench, app: jobq.App) -> None:
    backoff = {"err: 429": HOUR}
    app.queue("q", fifo=True, throttle=jobq.per_minute(100_000, backoff=backoff))
    app.queue("other", fifo=True)

    @app.handler("k", queue="q", retry=lambda failures, error: timedelta(0))
    async def handler(fails: bool) -> None:
        if fails:
            raise RuntimeError("429 Too Many Requests")

    first = bench.enqueue(handler, False)
    second = bench.enqueue(handler, True)
    async with bench.working(app) as worker:
        await bench.until(first)
        await bench.until_retried(second)
        await bench.until(bench.enqueue(handler.options(queue="other"), False))
        await more_claims(worker, 2)

    assert bench.job(second).attempt == 1
    assert ready_in(bench) > HOUR * 0.9


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(ZeroDivisionError("broken"), ZeroDivisionError, id="raises"),
        pytest.param(SystemExit(), SystemExit, id="exits"),
        pytest.param(5, TypeError, id="a number"),
        pytest.param(None, TypeError, id="nothing"),
        pytest.param(timedelta.max, ValueError, id="for ever"),
    ],
)
async def test_a_broken_throttle_is_reported_and_loses_no_job(
    bench: Bench, app: jobq.App, answer: Any, said: type[BaseException]
) -> None:
    events: list[jobq.ErrorEvent] = []
    app.on_error(events.append)

    def throttle(outcome: str, error: BaseException | None, elapsed: timedelta) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    app.queue("q", fifo=True, throttle=throttle)
    handler: Any = app.handler("k", queue="q")(lambda: None)
    ids = bench.enqueue_many(handler, 3)

    async with bench.working(app):
        states = await bench.until_all_ended()

    assert states == dict.fromkeys(ids, State.DONE)
    assert [type(event.error) for event in events] == [said] * 3
    assert {event.final for event in events} == {False}


async def test_the_pace_outlives_a_worker_that_is_restarted(bench: Bench, app: jobq.App) -> None:
    app.queue("q", fifo=True, throttle=lambda outcome, error, elapsed: HOUR)
    handler: Any = app.handler("k", queue="q")(lambda: None)
    first, second = bench.enqueue(handler), bench.enqueue(handler)

    async with bench.working(app):
        await bench.until(first)
    async with bench.working(app) as worker:
        await more_claims(worker, 2)

    assert bench.job(second).attempt == 0


async def test_a_slot_of_several_waits_by_itself(bench: Bench, app: jobq.App) -> None:
    seen = Effects()
    app.queue("q", concurrency=2, throttle=lambda outcome, error, elapsed: HOUR if outcome == "ok: slow" else -HOUR)

    @app.handler("k", queue="q")
    async def handler(n: int) -> str:
        seen.add(n)
        await anyio.lowlevel.checkpoint()
        return "slow" if n == 0 else "quick"

    for n in range(6):
        bench.enqueue(handler, n)
    async with bench.working(app):
        await bench.until_all_ended()

    assert sorted(seen.seen) == list(range(6))
    assert await eventually(lambda: ready_in(bench) > HOUR * 0.9, "a slot that waits")
