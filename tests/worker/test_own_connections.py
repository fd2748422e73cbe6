"""The worker's connections where an engine is more than a URL: creators, tokens, drivers of other kinds."""

from __future__ import annotations

from typing import Any

import psycopg
import psycopg2
import pytest
import sqlalchemy as sa
from bench import NEVER, Bench, assembly_of, eventually
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

import jobq
from jobq.errors import WorkerError
from jobq.model import State

pytestmark = pytest.mark.anyio
ELSEWHERE = "postgresql+psycopg://nobody@nowhere.invalid/nothing"  # a creator does not look at it
LISTENING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
BEATEN = "SELECT 1 FROM jobq.workers WHERE lease_until > started_at + lease"


async def work(bench: Bench, app: jobq.App, engine: Any) -> None:
    """Have a worker do everything that it needs connections for."""

    @app.handler("loop")
    async def in_the_loop() -> None:
        async with jobq.current().transaction() as session:
            await session.execute(sa.text("SELECT 1"))

    @app.handler("thread")
    def in_a_thread() -> None:
        with jobq.current().transaction() as session:
            session.execute(sa.text("SELECT 1"))

    async with bench.working(app, engine, poll_interval=NEVER):
        await eventually(lambda: bench.execute(LISTENING) and bench.execute(BEATEN), "listener and heartbeat")
        ended = [await bench.until(bench.enqueue(handler)) for handler in (in_the_loop, in_a_thread)]

    assert {job.state for job in ended} == {State.DONE}
    assert bench.workers() == []


def dsn(bench: Bench) -> str:
    return bench.url.replace("+psycopg", "")


async def test_an_engines_creator_makes_the_workers_connections(bench: Bench, app: jobq.App) -> None:
    made = []

    def creator() -> psycopg.Connection[Any]:
        made.append(psycopg.connect(dsn(bench), application_name="made here"))
        return made[-1]

    engine = sa.create_engine(ELSEWHERE, creator=creator)
    await work(bench, app, engine)

    assert len(made) >= 5  # pool, listener, heartbeat, two transactions
    assert all(each.closed for each in made)
    with engine.connect() as own:  # the application goes on with its own
        assert own.scalar(sa.select(1)) == 1
    engine.dispose()


async def test_an_async_engines_creator_does_too(bench: Bench, app: jobq.App) -> None:
    made = []

    async def creator() -> psycopg.AsyncConnection[Any]:
        made.append(await psycopg.AsyncConnection.connect(dsn(bench)))
        return made[-1]

    engine: AsyncEngine = create_async_engine(ELSEWHERE, async_creator=creator)
    await work(bench, app, engine)
    await engine.dispose()

    assert len(made) >= 5
    assert all(each.closed for each in made)


async def test_a_creator_of_another_driver_is_refused(bench: Bench, app: jobq.App) -> None:
    engine = sa.create_engine("postgresql+psycopg2://", creator=lambda: psycopg2.connect(dsn(bench)))

    with pytest.raises(WorkerError, match="makes connections of psycopg2, the worker needs those of psycopg: give it"):
        await work(bench, app, engine)


@pytest.mark.parametrize("driver", ["psycopg", "psycopg_async", "psycopg2", "asyncpg", "pg8000"])
async def test_each_connection_is_made_with_a_token_of_its_own(bench: Bench, app: jobq.App, driver: str) -> None:
    url = sa.make_url(bench.url)
    tokens = []
    is_async = driver in ("psycopg_async", "asyncpg")
    make: Any = create_async_engine if is_async else sa.create_engine
    engine = make(url.set(drivername=f"postgresql+{driver}", password="expired"))

    @event.listens_for(engine.sync_engine if is_async else engine, "do_connect")
    def provide_token(_dialect: Any, _record: Any, _arguments: Any, parameters: dict[str, Any]) -> None:
        tokens.append(parameters["password"])
        parameters["password"] = url.password

    await work(bench, app, engine)

    assert len(tokens) >= 5
    assert tokens[0] == "expired"  # SQLAlchemy 2.0 shows what a listener has put in to its next call


async def test_f23_the_isolation_level_of_the_database_is_not_the_workers(bench: Bench, app: jobq.App) -> None:
    app.handler("k")(lambda: None)
    database = bench.engine.url.database
    bench.execute(f'ALTER DATABASE "{database}" SET default_transaction_isolation = serializable')

    async with bench.working(app) as worker:
        own = assembly_of(worker).database
        levels = {
            await run(lambda connection: connection.exec_driver_sql("SHOW transaction_isolation").scalar_one())
            for run in (own.run, own.transaction)
        }

    assert levels == {"read committed"}
