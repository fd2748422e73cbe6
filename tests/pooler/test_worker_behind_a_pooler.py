"""A worker behind a transaction pooler does all that it does elsewhere, and leaves nothing to other clients."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from bench import NEVER, Bench, Effects, Gate, assembly_of, eventually
from bouncer import POOL_SIZE, bouncer, through

import jobq
from jobq.errors import WorkerError
from jobq.model import State

pytestmark = pytest.mark.anyio
POLLS = "behind a pooler nothing can be listened for"
SHOWN = "SELECT current_setting(name) FROM unnest(ARRAY['enable_seqscan', 'statement_timeout']) name"


def shown_to_others(url: str) -> set[tuple[str, ...]]:
    """The settings that other clients meet, on each of the connections that they share with the worker."""
    engine = sa.create_engine(url, connect_args={"prepare_threshold": None})
    with engine.connect() as one, engine.connect() as two:  # both in a transaction: one has each server connection
        pids = {each.exec_driver_sql("SELECT pg_backend_pid()").scalar_one() for each in (one, two)}
        met = {tuple(each.exec_driver_sql(SHOWN).scalars()) for each in (one, two)}
    engine.dispose()
    assert len(pids) == POOL_SIZE
    return met


async def test_jobs_run_and_are_retried(bench: Bench, app: jobq.App, pooled_url: str) -> None:
    @app.handler("k", retry=lambda failures, error: timedelta(0))
    async def handler(n: int) -> str:
        if jobq.current().job.attempt == 1:
            raise ValueError("not yet")
        return str(n)

    async with bench.working(app, pooled_url, pooler=True):
        ids = [bench.enqueue(handler, n) for n in range(20)]
        jobs = [await bench.until(each) for each in ids]

    assert {(job.state, job.failures, job.attempt) for job in jobs} == {(State.DONE, 1, 2)}
    assert [job.outcome for job in jobs] == [f"ok: {n}" for n in range(20)]


async def test_what_still_runs_when_it_stops_is_given_back(bench: Bench, app: jobq.App, pooled_url: str) -> None:
    gate = Gate()

    @app.handler("k")
    async def handler() -> None:
        await gate.pass_()

    async with bench.working(app, pooled_url, pooler=True, grace=timedelta(0)):
        held = bench.enqueue(handler)
        await gate.until_waiting()

    job = bench.job(held)
    assert (job.state, job.failures, bench.workers()) == (State.PENDING, 0, [])


@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_work_and_completion_commit_together(bench: Bench, app: jobq.App, pooled_url: str, where: str) -> None:
    bench.execute("CREATE TABLE effects (n int)")
    insert = sa.text("INSERT INTO effects VALUES (1)")

    @app.handler("loop")
    async def in_the_loop() -> None:
        async with jobq.current().transaction() as session:
            await session.execute(insert)

    @app.handler("thread")
    def in_a_thread() -> None:
        with jobq.current().transaction() as session:
            session.execute(insert)

    handlers: dict[str, Any] = {"loop": in_the_loop, "thread": in_a_thread}
    async with bench.working(app, pooled_url, pooler=True):
        ended = [await bench.until(bench.enqueue(handlers[where])) for _ in range(8)]  # psycopg prepares the sixth

    assert {job.state for job in ended} == {State.DONE}
    assert bench.execute("SELECT count(*) FROM effects")[0][0] == 8


async def test_its_settings_are_for_its_own_statements_alone(bench: Bench, app: jobq.App, pooled_url: str) -> None:
    bench.execute(f'ALTER DATABASE "{bench.engine.url.database}" SET default_transaction_isolation = serializable')
    asked = f"{SHOWN} UNION ALL SELECT current_setting('transaction_isolation')"

    @app.handler("k")
    async def handler() -> None: ...

    async with bench.working(app, pooled_url, pooler=True) as worker:
        database = assembly_of(worker).database
        own = [
            await run(lambda connection: tuple(connection.exec_driver_sql(asked).scalars()))
            for run in (database.run, database.transaction)
        ]
        while_at_work = shown_to_others(pooled_url)
        bench.enqueue_many(handler, 50)
        await bench.until_all_ended()
    afterwards = shown_to_others(pooled_url)

    assert own == [("off", "10s", "read committed")] * 2
    assert while_at_work == afterwards == {("on", "0")}


async def test_nothing_is_prepared_and_nothing_goes_wrong(
    bench: Bench, app: jobq.App, pooled_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jobq")
    prepared = "SELECT count(*) FROM pg_prepared_statements"

    @app.handler("k")
    async def handler() -> None: ...

    async with bench.working(app, pooled_url, pooler=True) as worker:
        for _ in range(10):
            await bench.until(bench.enqueue(handler))
        counted = await assembly_of(worker).database.run(lambda one: one.exec_driver_sql(prepared).scalar_one())

    assert counted == 0
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert sum(POLLS in record.message for record in caplog.records) == 1


async def test_with_a_direct_url_to_listen_at_a_job_starts_at_once(
    bench: Bench, app: jobq.App, pooled_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jobq")
    seen = Effects()

    @app.handler("k")
    async def handler() -> None:
        seen.add(1)

    async with bench.working(app, pooled_url, pooler=True, listen_url=bench.url, poll_interval=NEVER):
        await bench.until_listening()
        bench.enqueue(handler)
        await seen.until(1)

    assert not any(POLLS in record.message for record in caplog.records)


async def test_a_worker_outlives_its_pooler(
    bench: Bench, app: jobq.App, server_url: str, pooler_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    handler: Any = app.handler("k")(lambda: None)
    server, first, second = sa.make_url(server_url), ExitStack(), ExitStack()
    port = first.enter_context(bouncer(server))
    assert port != pooler_port

    with first, second:
        async with bench.working(app, through(bench.url, port), pooler=True) as worker:
            await bench.until(bench.enqueue(handler))
            first.close()
            late = bench.enqueue(handler)
            await eventually(lambda: worker.stats().away_for is not None, "the loss of the pooler")
            second.enter_context(bouncer(server, port=port))
            job = await bench.until(late)

    assert (job.state, job.failures) == (State.DONE, 0)
    assert sum("the database cannot be used by" in record.message for record in caplog.records) == 1


async def test_a_worker_that_was_not_told_of_the_pooler_refuses_to_start(
    bench: Bench, app: jobq.App, pooled_url: str
) -> None:
    with pytest.raises(WorkerError, match=r"a pooler stands between .* --pooler \(in Python: pooler=True\)"):
        async with bench.working(app, pooled_url):
            pass

    assert shown_to_others(pooled_url) == {("on", "0")}


async def test_options_that_a_pooler_refuses_are_named(bench: Bench, app: jobq.App, pooled_url: str) -> None:
    url = f"{pooled_url}?options=-c%20search_path%3Dpublic"

    with pytest.raises(WorkerError, match="unsupported startup parameter: options: a pooler refuses `options`: take"):
        async with bench.working(app, url, pooler=True):
            pass
