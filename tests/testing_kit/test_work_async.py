"""Jobs that run in a test's own transaction, with an AsyncSession on every driver, and on a sync connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import shop_jobs as shop
import sqlalchemy as sa
from shop_jobs import COUNT, app, noted
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

import jobq
from jobq.testing import assert_enqueued_async, drain_async, enqueued, enqueued_async, work_once_async

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("handler", [shop.write, shop.write_async], ids=["plain", "async"])


@both
async def test_a_handlers_transaction_is_a_savepoint_of_the_tests_own(
    handler: Any, async_session: AsyncSession
) -> None:
    noted()
    job = await jobq.enqueue_async(async_session, handler, 7)
    await assert_enqueued_async(async_session, handler, n=7)

    first, second = await drain_async(app, async_session)

    assert (first.job.id, first.job.outcome) == (job.id, "ok: wrote 7")
    assert (second.job.kind, noted()) == ("note", ["wrote 7"])
    assert await async_session.scalar(COUNT) == 1
    assert await enqueued_async(async_session) == []
    assert await work_once_async(app, async_session) is None


@pytest.mark.parametrize("handler", [shop.fail, shop.fail_async], ids=["plain", "async"])
async def test_what_a_handler_raises_is_recorded_and_comes_through(handler: Any, async_session: AsyncSession) -> None:
    job = await jobq.enqueue_async(async_session, handler)

    with pytest.raises(OSError, match="disk full"):
        await work_once_async(app, async_session)

    waiting = await jobq.get_async(async_session, job.id)
    assert waiting is not None
    assert (waiting.state, waiting.failures) == ("pending", 1)
    (dead,) = await drain_async(app, async_session, scheduled=True, raise_errors=False)
    assert dead.job.state is jobq.State.DEAD
    with pytest.raises(jobq.ContextError):
        jobq.current()


async def test_the_lifespan_is_open_for_the_call(async_session: AsyncSession) -> None:
    own = jobq.App()

    @own.lifespan
    async def opened() -> AsyncIterator[str]:
        yield "state"

    own.handler("k")(lambda: jobq.current().state)
    await jobq.enqueue_async(async_session, jobq.kind("k", queue="q"))

    worked = await work_once_async(own, async_session)

    assert worked is not None
    assert worked.job.outcome == "ok: state"


async def test_args_that_do_not_fit_and_endless_jobs_are_told(async_session: AsyncSession) -> None:
    await jobq.enqueue_async(async_session, jobq.kind("note", queue="q"), txt="x")
    with pytest.raises(jobq.ArgsError):
        await drain_async(app, async_session)

    await jobq.enqueue_async(async_session, shop.endless)
    with pytest.raises(jobq.WorkerError, match="3 jobs have run"):
        await drain_async(app, async_session, most=3)


async def test_a_sync_session_is_refused(session: Session) -> None:
    with pytest.raises(jobq.BindError, match="AsyncSession"):
        await work_once_async(app, session)  # type: ignore[arg-type]


async def test_an_async_session_on_a_sync_connection_can_do_what_others_can(
    session: Session, connection: sa.Connection
) -> None:
    from jobq.testing.joined import JoinedSessions

    joined = JoinedSessions(connection).async_session()
    numbers = sa.text("SELECT generate_series(1, 3) AS n")

    assert (await joined.execute(numbers)).scalars().first() == 1
    assert (await joined.scalars(numbers)).all() == [1, 2, 3]
    assert await joined.scalar(numbers) == 1
    assert [row.n async for row in await joined.stream(numbers)] == [1, 2, 3]
    inner = await joined.connection()
    assert (await inner.scalars(numbers)).first() == 1
    assert await jobq.enqueue_async(inner, shop.note, "x") is not None
    async with joined.begin_nested() as savepoint:
        await joined.execute(shop.WRITE, {"n": 1})
        await savepoint.rollback()
    await joined.commit()
    assert session.scalar(COUNT) == 0
    assert len(enqueued(session)) == 1
    await joined.execute(shop.WRITE, {"n": 1})
    await joined.rollback()
    assert session.scalar(COUNT) == 0
    await joined.close()
