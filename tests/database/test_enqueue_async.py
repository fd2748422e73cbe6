"""The async twins: checked at the call, sent at the await, in the transaction of the async session."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import Session

from jobq.errors import ArgsError, AutocommitError, BindError
from jobq.model import Enqueued
from jobq.producer import enqueue, enqueue_async, enqueue_many, enqueue_many_async
from jobq.registry import App
from jobq.tables import jobs

pytestmark = pytest.mark.anyio
app = App()


@app.handler("email.send")
async def send_email(to: str, self: str = "", fn: str = "", bind: str = "", called: str = "") -> None: ...


@pytest.fixture(params=["psycopg", "asyncpg"])
async def async_engine(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(sa.make_url(database_url).set(drivername=f"postgresql+{request.param}"))
    yield engine
    await engine.dispose()


@pytest.fixture
async def session(async_engine: AsyncEngine) -> AsyncIterator[AsyncSession]:
    async with AsyncSession(async_engine) as session:
        yield session


async def callsites(session: AsyncSession) -> list[str | None]:
    return list(await session.scalars(sa.select(jobs.c.callsite).order_by(jobs.c.id)))


def this_line() -> str:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return f"tests/database/test_enqueue_async.py:{frame.f_back.f_lineno}"


async def test_f53_the_job_is_in_the_sessions_transaction(session: AsyncSession) -> None:
    given = await enqueue_async(session, send_email, "a")
    assert given.created
    assert session.in_transaction()
    await session.rollback()
    assert await callsites(session) == []

    await enqueue_async(session, send_email, "a")
    await session.commit()
    assert len(await callsites(session)) == 1


async def test_scoped_sessions_and_connections_are_taken(async_engine: AsyncEngine) -> None:
    scoped = async_scoped_session(async_sessionmaker(async_engine), scopefunc=asyncio.current_task)
    first = await enqueue_async(scoped, send_email, "a")
    assert [answer.id for answer in await enqueue_many_async(scoped, send_email, [{"to": "b"}])] > [first.id]
    await scoped.commit()
    await scoped.remove()

    async with async_engine.begin() as connection:
        await enqueue_async(connection, send_email, "a")
        assert await connection.scalar(sa.select(sa.func.count()).select_from(jobs)) == 3


async def test_many_are_answered_in_order_with_keys(session: AsyncSession) -> None:
    rows = [send_email.options(unique_key=key).args(key) for key in "zaz"]

    given = await enqueue_many_async(session, send_email, rows)

    assert [answer.created for answer in given] == [True, True, False]
    assert given[2] == Enqueued(given[0].id, created=False)
    assert await enqueue_many_async(session, send_email, []) == []


async def test_arguments_of_any_name_reach_the_handler(session: AsyncSession) -> None:
    await enqueue_async(session, send_email, "a", self="1", fn="2", bind="3", called="4")

    args = await session.scalar(sa.select(jobs.c.args))
    assert args == {"to": "a", "self": "1", "fn": "2", "bind": "3", "called": "4"}


async def test_arguments_are_checked_at_the_call_and_not_at_the_await(session: AsyncSession) -> None:
    with pytest.raises(ArgsError):
        _ = enqueue_async(session, send_email, to=5)  # type: ignore[arg-type]
    with pytest.raises(ArgsError):
        _ = enqueue_many_async(session, send_email, [{"too": "a"}])


async def test_the_callsite_is_that_of_the_call_however_it_is_awaited(session: AsyncSession) -> None:
    lines = [this_line()]; await enqueue_async(session, send_email, "a")  # fmt: skip  # noqa: E702
    lines += [this_line()]; await asyncio.create_task(enqueue_async(session, send_email, "a"))  # fmt: skip  # noqa: E702
    lines += [this_line()]; await asyncio.wait_for(enqueue_async(session, send_email, "a"), 30)  # fmt: skip  # noqa: E702
    lines += [this_line()]; await session.run_sync(enqueue, send_email, "a")  # fmt: skip  # noqa: E702
    lines += [this_line()]; await enqueue_many_async(session, send_email, [{"to": "a"}])  # fmt: skip  # noqa: E702

    assert await callsites(session) == lines


async def test_f53_sync_sessions_are_refused_with_the_name_of_the_other_function(engine: sa.Engine) -> None:
    given: Any
    with Session(engine) as given, pytest.raises(BindError, match=r"enqueue_async takes .* got Session: use enqueue$"):
        _ = enqueue_async(given, send_email, "a")
    with engine.connect() as given, pytest.raises(BindError, match=r"got Connection: use enqueue_many$"):
        _ = enqueue_many_async(given, send_email, [])


async def test_f53_async_sessions_are_refused_by_the_sync_functions(async_engine: AsyncEngine) -> None:
    given: Any = async_scoped_session(async_sessionmaker(async_engine), scopefunc=asyncio.current_task)
    with pytest.raises(BindError, match="got async_scoped_session: use enqueue_async"):
        enqueue(given, send_email, "a")
    with pytest.raises(BindError, match="got async_scoped_session: use enqueue_many_async"):
        enqueue_many(given, send_email, [])


async def test_an_engine_or_a_factory_is_refused_with_the_way_to_do_it(async_engine: AsyncEngine) -> None:
    given: Any = async_engine
    with pytest.raises(BindError, match=r"async with engine\.begin\(\) as connection"):
        _ = enqueue_async(given, send_email, "a")
    given = async_sessionmaker(async_engine)
    with pytest.raises(BindError, match="call it to get a session"):
        _ = enqueue_async(given, send_email, "a")


async def test_a7_autocommit_is_refused(async_engine: AsyncEngine) -> None:
    autocommit = async_engine.execution_options(isolation_level="AUTOCOMMIT")
    async with AsyncSession(autocommit) as session:
        with pytest.raises(AutocommitError):
            await enqueue_async(session, send_email, "a")
        assert await callsites(session) == []


async def test_f53_a_session_shared_by_tasks_gives_sqlalchemys_own_error_or_works(session: AsyncSession) -> None:
    answers = await asyncio.gather(
        *[enqueue_async(session, send_email, str(n)) for n in range(4)], return_exceptions=True
    )
    for answer in answers:
        assert isinstance(answer, Enqueued | sa.exc.InvalidRequestError | sa.exc.InterfaceError), answer
    await session.rollback()
    assert await callsites(session) == []
