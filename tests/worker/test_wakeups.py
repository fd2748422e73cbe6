"""Notifications: a worker that sleeps until its next poll, an hour away, starts a job at once."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import anyio
import psycopg
import pytest
from bench import NEVER, Bench, Effects, Gate, assembly_of, eventually

import jobq
from jobq import State
from jobq.worker import listener

pytestmark = pytest.mark.anyio

A_SECOND = 1.0


async def test_f48_the_listener_is_idle_and_outside_of_any_transaction(bench: Bench, app: jobq.App) -> None:
    handler: Any = app.handler("k")(lambda: None)

    async with bench.working(app, poll_interval=NEVER, name="w1"):
        (hearing,) = await bench.until_listening()
        assert (hearing.state, hearing.xact_start, hearing.application_name) == ("idle", None, "jobq w1")
        with anyio.fail_after(A_SECOND):
            await bench.until(bench.enqueue(handler))


async def test_a_listener_that_has_heard_nothing_asks_whether_the_server_is_there_and_goes_on(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "SILENCE_SECONDS", 0.05)
    handler: Any = app.handler("k")(lambda: None)
    asked = "SELECT query_start FROM pg_stat_activity WHERE query = 'SELECT 1' AND application_name LIKE 'jobq %'"

    async with bench.working(app, poll_interval=NEVER):
        first = await eventually(lambda: bench.execute(asked), "a question")
        await eventually(lambda: bench.execute(asked) > first, "another question")
        for _ in range(3):
            with anyio.fail_after(A_SECOND):
                await bench.until(bench.enqueue(handler))


async def test_f06_a_mebibyte_of_args_starts_at_once_and_arrives_whole(bench: Bench, app: jobq.App) -> None:
    texts = Effects()
    handler: Any = app.handler("k")(lambda text: texts.add(text))
    text = "ä" * ((1 << 19) - 100)

    async with bench.working(app, poll_interval=NEVER):
        await bench.until_listening()
        bench.enqueue(handler, text=text)
        with anyio.fail_after(A_SECOND):
            await texts.until(1)

    assert texts.seen == [text]


@pytest.mark.parametrize("queue", ["Mixed-Case", "q" * 63, "a.b:c/d_e"])
async def test_f49_any_queue_name_that_is_allowed_wakes_the_worker(bench: Bench, app: jobq.App, queue: str) -> None:
    handler: Any = app.handler("k", queue=queue)(lambda: None)

    async with bench.working(app, poll_interval=NEVER, queues=[queue]):
        await bench.until_listening()
        with anyio.fail_after(A_SECOND):
            await bench.until(bench.enqueue(handler))


async def test_f47_a_listener_whose_connection_is_cut_listens_again(bench: Bench, app: jobq.App) -> None:
    events = Effects()
    app.on_error(events.add)
    handler: Any = app.handler("k")(lambda: None)

    async with bench.working(app, poll_interval=NEVER) as worker:
        (before,) = await bench.until_listening()
        bench.execute("SELECT pg_terminate_backend(:pid)", pid=before.pid)
        await eventually(lambda: events.seen and not worker.stats().away_for, "the connection's coming back")
        (after,) = await bench.until_listening()
        with anyio.fail_after(A_SECOND):
            await bench.until(bench.enqueue(handler))

    assert after.pid != before.pid
    assert [(event.job, event.final) for event in events.seen] == [(None, False)]


async def test_f47_what_is_enqueued_while_nobody_listens_is_found_on_the_way_back(bench: Bench, app: jobq.App) -> None:
    handler: Any = app.handler("k")(lambda: None)

    async with bench.working(app, poll_interval=NEVER):
        (hearing,) = await bench.until_listening()
        with bench.connect() as connection:  # ends the listener before anybody is told
            id_ = jobq.enqueue(connection, handler).id
            connection.exec_driver_sql("SELECT pg_terminate_backend(%s, 5000)", (hearing.pid,))
        await bench.until(id_)


async def test_f51_a_job_starts_after_its_commit_and_not_before(bench: Bench, app: jobq.App) -> None:
    seen = Effects()
    handler: Any = app.handler("k")(lambda: seen.add("started"))

    async with bench.working(app, poll_interval=NEVER) as worker:
        await bench.until_listening()
        with bench.connect() as connection:
            jobq.enqueue(connection, handler)
            for _ in range(3):
                claims = worker.stats().claims
                assembly_of(worker).claimer.tell(None)
                await eventually(lambda claims=claims: worker.stats().claims > claims, "a claim")
            assert seen.seen == []
        with anyio.fail_after(A_SECOND):
            await seen.until(1)


async def test_f50_ten_thousand_jobs_of_one_transaction_are_one_notification(bench: Bench, app: jobq.App) -> None:
    handler: Any = app.handler("k")(lambda: None)

    with psycopg.connect(bench.url.replace("+psycopg", ""), autocommit=True) as listening:
        listening.execute("LISTEN jobq")
        bench.enqueue_many(handler, 10_000)
        bench.execute("SELECT pg_notify('jobq', 'the end')")
        heard = []
        for notification in listening.notifies(timeout=5):
            if notification.payload == "the end":
                break
            heard.append(notification.payload)

    assert len(heard) == 1
    assert len(heard[0]) < 100


async def test_f50_an_idle_worker_that_is_told_again_and_again_looks_twenty_times_a_second(
    bench: Bench, app: jobq.App
) -> None:
    app.handler("k")(lambda: None)

    async with bench.working(app, poll_interval=NEVER) as worker:
        await bench.until_listening()
        claims, since = worker.stats().claims, time.monotonic()
        while time.monotonic() - since < 0.5:
            bench.execute("SELECT pg_notify('jobq', 'default|1|' || extract(epoch FROM now())::numeric(20, 6))")
            await anyio.lowlevel.checkpoint()
        took = time.monotonic() - since
        looked = worker.stats().claims - claims

    assert 1 <= looked <= took / 0.05 + 2


async def test_a_burst_that_was_told_of_once_is_found_whole(bench: Bench, app: jobq.App) -> None:
    """Of a burst not every job is told: those that come a little after the notification are found all the same."""
    handler: Any = app.handler("k")(lambda: None)

    async with bench.working(app, poll_interval=NEVER):
        await bench.until_listening()
        first = bench.enqueue(handler)
        await bench.until(first)
        late = bench.add("k")  # told to nobody
        await bench.until(late)


async def test_notifications_that_jobq_did_not_write_are_harmless(bench: Bench, app: jobq.App) -> None:
    handler: Any = app.handler("k")(lambda: None)

    async with bench.working(app, poll_interval=NEVER, queues=["default"]):
        await bench.until_listening()
        for payload in (
            "",
            "x",
            "default|1|",
            "default|9|1",
            "other|1|1",
            "default|1|99999999999",
            "a|b|c|d",
            "|" * 99,
        ):
            bench.execute("SELECT pg_notify('jobq', :payload)", payload=payload)
        with anyio.fail_after(A_SECOND):
            await bench.until(bench.enqueue(handler))


async def test_without_a_listener_the_poll_finds_the_jobs(bench: Bench, app: jobq.App) -> None:
    handler: Any = app.handler("k")(lambda: None)

    async with bench.working(app, listen=False):
        job = await bench.until(bench.enqueue(handler))
        assert not bench.execute(
            "SELECT FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname=current_database()"
        )

    assert job.state is State.DONE


async def test_a_scheduled_job_starts_when_it_is_due(bench: Bench, app: jobq.App) -> None:
    handler: Any = app.handler("k")(lambda: None)

    async with bench.working(app):
        id_ = bench.enqueue(handler.options(delay=timedelta(milliseconds=200)))
        job = await bench.until(id_)

    assert job.attempted_at is not None
    assert job.attempted_at >= job.run_at


async def test_a_full_worker_takes_the_next_job_as_soon_as_one_has_ended(bench: Bench, app: jobq.App) -> None:
    gate = Gate()
    long: Any = app.handler("long")(gate.pass_)
    quick: Any = app.handler("quick")(lambda: None)

    async with bench.working(app, poll_interval=NEVER, concurrency=1):
        await bench.until_listening()
        bench.enqueue(long)
        await gate.until_waiting()
        ids = bench.enqueue_many(quick, 5)
        gate.open()
        for id_ in ids:
            await bench.until(id_)
