"""Servers that cut connections, lock tables and change them, and applications with settings of their own."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from bench import Bench, Effects, Gate, assembly_of, eventually
from sqlalchemy.ext.asyncio import create_async_engine

import jobq
from jobq import State

pytestmark = pytest.mark.anyio
# The first two writes of an end are chosen as the victim: a sequence is not rolled back.
VICTIM_AT_FIRST = [
    "CREATE SEQUENCE tries",
    "CREATE FUNCTION be_the_victim() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('tries') <= 2 THEN"
    " RAISE 'deadlock detected' USING ERRCODE = '40P01'; END IF; RETURN NEW; END $$",
    "CREATE TRIGGER victim BEFORE INSERT ON jobq.finished_jobs FOR EACH ROW EXECUTE FUNCTION be_the_victim()",
]


def cut_off(bench: Bench) -> int:
    """End all connections but the test's own; how many there were."""
    return len(
        bench.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    )


def connections(bench: Bench) -> int:
    return int(
        bench.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'jobq%'"
        )[0][0]
    )


async def test_f74_connections_cut_fifty_times_leave_nothing_behind(bench: Bench, app: jobq.App) -> None:
    handler: Any = app.handler("k")(lambda: None)

    async with bench.working(app, lease=timedelta(seconds=1)) as worker:

        async def settle() -> tuple[int, int]:
            await bench.until(bench.enqueue(handler))
            await bench.until_listening()
            await eventually(lambda: worker.stats().away_for is None, "the link's coming back")
            gc.collect()
            return len(os.listdir("/proc/self/fd")), connections(bench)

        files, sessions = await settle()
        for _ in range(50):
            cut_off(bench)
            await bench.until(bench.enqueue(handler))
        files_after, sessions_after = await settle()

    assert files_after <= files + 3
    assert sessions_after <= max(sessions, 6) + 3
    assert worker.stats().ok == 52


async def test_f42_jobs_that_run_while_every_connection_is_cut_are_recorded_once(bench: Bench, app: jobq.App) -> None:
    gate, seen, events = Gate(), Effects(), Effects()
    app.on_error(events.add)

    @app.handler("k")
    async def handler() -> None:
        seen.add(jobq.current().job.id)
        await gate.pass_()

    async with bench.working(app) as worker:
        ids = bench.enqueue_many(handler, 4)
        await gate.until_waiting(4)
        for _ in range(3):
            cut_off(bench)
            await bench.until_listening()
        gate.open()
        jobs = [await bench.until(id_) for id_ in ids]

    assert {(job.state, job.attempt, job.failures) for job in jobs} == {(State.DONE, 1, 0)}
    assert sorted(seen.seen) == ids
    assert (worker.stats().leases_lost, worker.stats().refused) == (0, 0)
    assert all(event.job is None for event in events.seen)
    assert len(events) <= 3


@contextmanager
def shut(bench: Bench) -> Iterator[None]:
    """A server that lets nobody in, and has thrown out whoever was there."""
    url = bench.engine.url
    other = sa.create_engine(url.set(database="postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)

    def allow(allowed: bool) -> None:
        with other.connect() as connection:
            connection.exec_driver_sql(f'ALTER DATABASE "{url.database}" ALLOW_CONNECTIONS {allowed}')

    allow(False)
    cut_off(bench)
    bench.engine.dispose()
    try:
        yield
    finally:
        allow(True)


async def test_f42_an_outage_is_said_once_and_its_end_once(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture
) -> None:
    events = Effects()
    app.on_error(events.add)
    handler: Any = app.handler("k")(lambda: None)

    async with bench.working(app, lease=timedelta(seconds=5)) as worker:
        await bench.until_listening()
        assembly = assembly_of(worker)
        with shut(bench):
            await eventually(lambda: len(assembly.link._failing) >= 3, "several loops failing")
            assert worker.stats().away_for is not None
        await eventually(lambda: worker.stats().away_for is None, "the link's coming back")
        await bench.until(bench.enqueue(handler))

    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 2
    assert said[0].startswith("the database cannot be used by the ")
    assert said[1].startswith("the database can be used again after ")
    assert len(events) == 1
    assert (events.seen[0].job, events.seen[0].attempt, events.seen[0].final) == (None, None, False)


async def test_f43_a_column_added_while_workers_run_disturbs_nobody(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture
) -> None:
    handler: Any = app.handler("k", max_attempts=2, retry=lambda failures, error: timedelta(0))(
        lambda fails=False: 1 / 0 if fails and jobq.current().job.failures == 0 else None
    )

    async def twenty() -> None:
        for n in range(20):
            bench.enqueue(handler, fails=n % 5 == 0)
            await bench.until_all_ended()

    async with bench.working(app, poll_interval=timedelta(milliseconds=10)) as worker:
        await twenty()
        for table in ("jobs", "finished_jobs", "workers", "queues"):
            bench.execute(f"ALTER TABLE jobq.{table} ADD COLUMN extra int DEFAULT 7")
        await twenty()

    assert (worker.stats().ok, worker.stats().retry) == (40, 8)
    assert not [record for record in caplog.records if record.name == "jobq.worker" and record.levelno > logging.INFO]


async def test_f44_no_connection_of_the_worker_is_in_a_transaction_while_a_handler_runs(
    bench: Bench, app: jobq.App
) -> None:
    name = bench.engine.url.database
    bench.execute(f"ALTER DATABASE \"{name}\" SET idle_in_transaction_session_timeout = '300ms'")
    bench.execute(f"ALTER DATABASE \"{name}\" SET statement_timeout = '2s'")
    gate, states = Gate(), set()
    handler: Any = app.handler("k")(gate.pass_)

    def looked_for_long_enough(id_: int) -> bool:
        sessions = bench.execute(
            "SELECT state FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'jobq%'"
            " AND now() - state_change > interval '50 ms'"
        )
        states.update(session.state for session in sessions)
        row = bench.execute(
            "SELECT now() - attempted_at > interval '0.7 s' AS is_old FROM jobq.jobs WHERE id = :id", id=id_
        )
        return bool(row[0].is_old)

    async with bench.working(app):
        id_ = bench.enqueue(handler)
        await gate.until_waiting()
        await eventually(lambda: looked_for_long_enough(id_), "0.7 s of the handler")
        gate.open()
        job = await bench.until(id_)

    assert (job.state, job.attempt, job.failures) == (State.DONE, 1, 0)
    assert states == {"idle"}


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_f23_the_isolation_level_of_the_applications_engine_is_not_the_workers(
    bench: Bench, app: jobq.App, kind: str
) -> None:
    seen = Effects()
    handler: Any = app.handler("k")(lambda: seen.add(jobq.current().job.id))
    make: Any = sa.create_engine if kind == "sync" else create_async_engine
    engine = make(bench.url, isolation_level="SERIALIZABLE")

    async with bench.working(app, engine) as one, bench.working(app, engine):
        ids = bench.enqueue_many(handler, 50)
        await bench.until_all_ended()
        database = assembly_of(one).database
        shown = "SHOW transaction_isolation"
        levels = {
            await run(lambda connection: connection.exec_driver_sql(shown).scalar_one())
            for run in (database.run, database.transaction)
        }

    assert sorted(seen.seen) == ids
    assert levels == {"read committed"}


async def test_f36_a_session_that_a_handler_left_aborted_touches_nobody_else(bench: Bench, app: jobq.App) -> None:
    bench.execute("CREATE TABLE effects (n int)")
    engine = sa.create_engine(bench.url, pool_size=1, max_overflow=0)

    @app.handler("first")
    def first() -> None:
        connection = engine.connect()
        with suppress(sa.exc.DBAPIError):
            connection.exec_driver_sql("SELECT 1/0")

    @app.handler("second")
    def second() -> None:
        with engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO effects VALUES (1)")

    async with bench.working(app, concurrency=1):
        left = await bench.until(bench.enqueue(first))
        gc.collect()  # SQLAlchemy's error and its frames are a cycle: the collector brings the connection back
        wrote = await bench.until(bench.enqueue(second))
    engine.dispose()

    assert (left.state, wrote.state) == (State.DONE, State.DONE)
    assert bench.execute("SELECT n FROM effects")[0][0] == 1


async def test_f36_a_transaction_that_a_handler_left_aborted_is_not_the_next_ones(bench: Bench, app: jobq.App) -> None:
    @app.handler("k", max_attempts=1)
    async def handler(breaks: bool) -> None:
        async with jobq.current().transaction() as session:
            if breaks:
                with pytest.raises(sa.exc.DBAPIError):
                    await session.execute(sa.text("SELECT 1/0"))

    async with bench.working(app, concurrency=1):
        broken = await bench.until(bench.enqueue(handler, breaks=True))
        fine = await bench.until(bench.enqueue(handler, breaks=False))

    assert (broken.state, broken.errors[0].error, fine.state) == (
        State.DEAD,
        "sqlalchemy.exc.InternalError",
        State.DONE,
    )


async def test_f23_an_end_that_meets_a_deadlock_is_written_again(bench: Bench, app: jobq.App) -> None:
    seen = Effects()
    handler: Any = app.handler("k")(lambda: seen.add(jobq.current().job.id))
    for statement in VICTIM_AT_FIRST:
        bench.execute(statement)

    async with bench.working(app):
        ids = bench.enqueue_many(handler, 3)
        jobs = [await bench.until(id_) for id_ in ids]

    assert bench.execute("SELECT last_value FROM tries")[0][0] > 3
    assert {(job.state, job.attempt, job.failures) for job in jobs} == {(State.DONE, 1, 0)}
    assert sorted(seen.seen) == ids
