"""Which jobs a worker takes, in which order, and what it does with those that it cannot read."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from bench import NEVER, Bench, Effects, Gate, more_claims

import jobq
from jobq import State
from jobq.tables import jobs

pytestmark = pytest.mark.anyio


async def test_f21_smaller_priorities_run_first(bench: Bench, app: jobq.App) -> None:
    seen = Effects()
    handler: Any = app.handler("k")(lambda n: seen.add(n))
    for priority in (3, 1, 0, 2, 0, 1):
        bench.enqueue(handler.options(priority=priority), n=priority)

    async with bench.working(app, concurrency=1):
        await seen.until(6)

    assert seen.seen == [0, 0, 1, 1, 2, 3]


@pytest.mark.parametrize("concurrency", [1, 10])
async def test_f20_jobs_start_in_the_order_of_priority_time_and_id(
    bench: Bench, app: jobq.App, concurrency: int
) -> None:
    seen = Effects()

    @app.handler("k")
    async def handler() -> None:
        job = jobq.current().job
        seen.add((job.priority, job.run_at, job.id))

    now = bench.execute("SELECT now()")[0][0]
    rows = [
        {"kind": "k", "priority": n % 3, "run_at": now - timedelta(seconds=n * 7 % 5), "created_at": now}
        for n in range(50)
    ]
    bench.execute(sa.insert(jobs).values(rows))
    async with bench.working(app, concurrency=concurrency):
        await seen.until(50)

    assert seen.seen == sorted(seen.seen)


async def test_f07_args_that_no_longer_fit_end_the_job_and_stay_as_they_are(bench: Bench, app: jobq.App) -> None:
    @app.handler("k", max_attempts=9)
    async def handler(to: str, subject: str = "Hello") -> str:
        return f"{to} {subject}"

    stored: list[dict[str, Any]] = [{"to": "a", "cc": "b"}, {"subject": "s"}, {"to": 1}, {"to": "a", "subject": None}]
    bad = [bench.add("k", args=args) for args in stored]
    good = bench.add("k", args={"to": "a"})

    async with bench.working(app):
        assert (await bench.until(good)).outcome == "ok: a Hello"
        ended = [await bench.until(id_) for id_ in bad]
        assert {(job.state, job.attempt) for job in ended} == {(State.DEAD, 1)}
        assert [job.args for job in ended] == stored
        names = ["cc", "to", "args.to", "args.subject"]
        assert all(name in job.errors[0].message for name, job in zip(names, ended, strict=True))
        assert {job.errors[0].error for job in ended} == {"jobq.errors.ArgsError"}

    mended = jobq.App()
    mended.handler("k")(lambda to="", subject=None, cc="": None)
    with bench.connect() as connection:
        assert jobq.retry(connection, *bad).ids == tuple(bad)
    async with bench.working(mended):
        assert set((await bench.until_all_ended()).values()) == {State.DONE}


async def test_f04_rows_that_python_cannot_parse_are_dead_and_their_neighbours_done(
    bench: Bench, app: jobq.App
) -> None:
    app.handler("k", max_attempts=9)(lambda x=0: None)
    poison = "INSERT INTO jobq.jobs (kind, args) VALUES ('k', CAST(:text AS jsonb)) RETURNING id"
    good = [bench.add("k", args={"x": n}) for n in range(5)]
    bad = [
        bench.execute(poison, text=text)[0][0]
        for text in (f'{{"x": {"9" * 5000}}}', '{"x": ' + "[" * 2000 + "]" * 2000 + "}")
    ]
    good += [bench.add("k", args={"x": n}) for n in range(5)]

    async with bench.working(app, concurrency=20):
        states = await bench.until_all_ended()

    assert {id_ for id_, state in states.items() if state is State.DONE} == set(good)
    assert {id_ for id_, state in states.items() if state is State.DEAD} == set(bad)
    assert all((job.attempt, job.errors[0].error) == (1, "jobq.errors.ArgsError") for job in map(bench.job, bad))


async def test_meta_that_makes_no_sense_is_not_there(bench: Bench, app: jobq.App) -> None:
    app.handler("k")(lambda: None)
    metas: list[Any] = [{"timeout": -1}, {"timeout": "x"}, {"timeout": 1e300, "keep": True}, [], 7, {"other": "kept"}]
    ids = [bench.add("k", meta=meta) for meta in metas]

    async with bench.working(app):
        states = await bench.until_all_ended()

    assert states == dict.fromkeys(ids, State.DONE)


async def test_f72_a_kind_without_a_handler_waits_and_holds_nobody_up(bench: Bench, app: jobq.App) -> None:
    app.handler("here")(lambda: None)
    unknown, known = bench.add("gone"), bench.add("here")

    async with bench.working(app, concurrency=1):
        await bench.until(known)

    job = bench.job(unknown)
    assert (job.state, job.attempt, job.failures) == (State.PENDING, 0, 0)
    later = jobq.App()
    later.handler("gone")(lambda: None)
    async with bench.working(later):
        assert (await bench.until(unknown)).state is State.DONE


async def test_f19_a_claim_takes_no_more_than_it_asked_for_whatever_the_planner_is_told(
    bench: Bench, app: jobq.App
) -> None:
    gate, off = Gate(), ("hashjoin", "mergejoin", "hashagg", "sort", "material")
    handler: Any = app.handler("k")(gate.pass_)
    bench.enqueue_many(handler, 2000)
    engine = sa.create_engine(bench.url, connect_args={"options": " ".join(f"-c enable_{name}=off" for name in off)})

    async with bench.working(app, engine, concurrency=10) as worker:
        await gate.until_waiting(10)
        running = bench.execute("SELECT count(*) FROM jobq.jobs WHERE attempt > 0")[0][0]
        worker.stop(now=True)

    assert running == 10
    assert worker.stats().claimed == 10


@pytest.mark.parametrize("limit", [{}, {"fifo": True}, {"concurrency": 2}], ids=["plain", "in order", "limited"])
async def test_a_worker_told_its_queues_leaves_the_others_alone(
    bench: Bench, app: jobq.App, limit: dict[str, Any]
) -> None:
    app.queue("b", **limit)
    app.handler("k")(lambda: None)
    mine, other = bench.add("k", queue="a"), bench.add("k", queue="b", priority=0)

    async with bench.working(app, queues=["a"]) as worker:
        await bench.until(mine)
        await more_claims(worker, 2)

    assert bench.job(other).attempt == 0


async def test_a10_a_queue_that_no_code_declares_starts_at_once_when_told(bench: Bench, app: jobq.App) -> None:
    handler: Any = app.handler("k")(lambda: None)

    async with bench.working(app, poll_interval=NEVER):
        await bench.until_listening()
        with anyio.fail_after(1):
            await bench.until(bench.enqueue(handler.options(queue="tenant-7")))


async def test_a10_a_queue_that_no_code_declares_is_found_by_a_survey(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobq.worker.surveyor.INTERVAL", timedelta(milliseconds=50))
    app.handler("k")(lambda: None)

    async with bench.working(app, listen=False):
        job = await bench.until(bench.add("k", queue="tenant-7"))

    assert job.state is State.DONE


async def test_a_paused_queue_is_not_claimed_from(bench: Bench, app: jobq.App) -> None:
    app.handler("k")(lambda: None)
    bench.execute("INSERT INTO jobq.queues (name, paused_until) VALUES ('a', now() + interval '1 hour')")
    paused, other = bench.add("k", queue="a"), bench.add("k", queue="b")

    async with bench.working(app):
        await bench.until(other)
        assert bench.job(paused).attempt == 0
        bench.execute("UPDATE jobq.queues SET paused_until = now()")
        assert (await bench.until(paused)).state is State.DONE
