"""Async sessions as applications have them; and one that two tasks share, by mistake."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from callers import ASYNC, url_of
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlmodel.ext.asyncio.session import AsyncSession as SQLModelSession

import jobq
from jobq.tables import jobs

with warnings.catch_warnings():
    warnings.simplefilter("ignore", sa.exc.SADeprecationWarning)  # of its own use of declarative_mixin
    from advanced_alchemy.config import SQLAlchemyAsyncConfig
    from advanced_alchemy.repository import SQLAlchemyAsyncRepository

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:.* in advanced-alchemy 1:DeprecationWarning"),
]  # 1.10 warns of itself
app = jobq.App()


class Base(DeclarativeBase): ...


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)


class Orders(SQLAlchemyAsyncRepository[Any]):
    model_type = Order


@app.handler("receipt.send", unique=True)
async def send_receipt(order_id: int) -> None: ...


@asynccontextmanager
async def plain(engine: AsyncEngine) -> AsyncIterator[Any]:
    async with AsyncSession(engine) as session:
        yield session


@asynccontextmanager
async def scoped(engine: AsyncEngine) -> AsyncIterator[Any]:
    session = async_scoped_session(async_sessionmaker(engine), scopefunc=asyncio.current_task)
    yield session
    await session.remove()


@asynccontextmanager
async def of_sqlmodel(engine: AsyncEngine) -> AsyncIterator[Any]:
    async with SQLModelSession(engine) as session:
        yield session


@asynccontextmanager
async def of_advanced_alchemy(engine: AsyncEngine) -> AsyncIterator[Any]:
    async with SQLAlchemyAsyncConfig(engine_instance=engine).get_session() as session:
        yield session


Kind = Callable[[AsyncEngine], AbstractAsyncContextManager[Any]]
KINDS: list[Kind] = [plain, scoped, of_sqlmodel, of_advanced_alchemy]


@pytest.fixture(params=ASYNC)
async def engine(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[AsyncEngine]:
    """Of an application that has its own tables beside those of jobq, and JSON of its own."""
    engine = create_async_engine(
        url_of(database_url, request.param), json_serializer=lambda _: "no", json_deserializer=lambda _: "?"
    )
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    yield engine
    await engine.dispose()


async def committed(engine: AsyncEngine) -> list[str]:
    """What another connection sees: the args of all jobs."""
    async with engine.connect() as connection:
        return sorted(await connection.scalars(sa.select(sa.cast(jobs.c.args, sa.Text))))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_the_job_shares_the_fate_of_the_order(engine: AsyncEngine, kind: Kind) -> None:
    orders = sa.select(Order.id.label("order_id"))
    async with kind(engine) as session:
        session.add(Order(id=1))
        assert (await jobq.enqueue_async(session, send_receipt, order_id=1)).created
        await session.rollback()

        session.add(Order(id=2))
        assert await jobq.enqueue_select_async(session, send_receipt, orders) == 1
        assert not (await jobq.enqueue_async(session, send_receipt, order_id=2)).created
        (job,) = await jobq.jobs_async(session)
        assert job.args == {"order_id": 2}
        assert await committed(engine) == []
        await session.commit()

        async with session.begin_nested() as savepoint:
            await jobq.enqueue_many_async(session, send_receipt, [{"order_id": n} for n in (3, 4)])
            await savepoint.rollback()
        await session.commit()
    assert await committed(engine) == ['{"order_id": 2}']


async def test_a_repository_of_advanced_alchemy_and_the_job_commit_together(engine: AsyncEngine) -> None:
    async with SQLAlchemyAsyncConfig(engine_instance=engine).get_session() as session:
        order = await Orders(session=session).add(Order(id=7))
        await jobq.enqueue_async(session, send_receipt, order_id=jobq.pk(order))
        assert await committed(engine) == []
        await session.commit()
    assert await committed(engine) == ['{"order_id": 7}']


async def test_a_block_of_the_sessionmaker_commits_at_its_end_or_not_at_all(engine: AsyncEngine) -> None:
    make = async_sessionmaker(engine)
    async with make.begin() as session:
        await jobq.enqueue_async(session, send_receipt, order_id=1)
        assert await committed(engine) == []
    with pytest.raises(ZeroDivisionError):
        async with make.begin() as session:
            await jobq.enqueue_async(session, send_receipt, order_id=1 // 0)

    assert await committed(engine) == ['{"order_id": 1}']


async def test_a_connection_takes_jobs_from_a_select(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        assert (
            await jobq.enqueue_select_async(connection, send_receipt, sa.select(sa.literal(1).label("order_id"))) == 1
        )
    assert await committed(engine) == ['{"order_id": 1}']


async def test_labels_are_checked_at_the_call_and_sync_sessions_refused(engine: AsyncEngine) -> None:
    wrong: Any = engine
    select = sa.select(sa.literal(1).label("order_id"))
    with pytest.raises(jobq.BindError, match="enqueue_select_async takes an AsyncSession"):
        _ = jobq.enqueue_select_async(wrong, send_receipt, select)
    async with AsyncSession(engine) as session:
        with pytest.raises(jobq.ArgsError, match="unknown labels: id; missing: order_id"):
            _ = jobq.enqueue_select_async(session, send_receipt, sa.select(sa.literal(1).label("id")))
        wrong = session
        with pytest.raises(jobq.BindError, match="use enqueue_select_async"):
            jobq.enqueue_select(wrong, send_receipt, select)


async def test_f53_tasks_that_share_a_session_by_mistake_get_sqlalchemys_own_error(engine: AsyncEngine) -> None:
    await engine.dispose()  # the first task has to connect, and the others come meanwhile
    async with AsyncSession(engine) as session:
        answers = await asyncio.gather(
            *[jobq.enqueue_async(session, send_receipt, order_id=n) for n in range(4)], return_exceptions=True
        )
        refused = [str(answer) for answer in answers if isinstance(answer, sa.exc.InvalidRequestError)]
        created = [answer for answer in answers if isinstance(answer, jobq.Enqueued)]
        assert len(refused) + len(created) == len(answers)
        assert refused
        assert all("concurrent operations are not permitted" in error for error in refused)
        await session.rollback()
    assert await committed(engine) == []
