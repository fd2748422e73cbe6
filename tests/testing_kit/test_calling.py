"""Handlers that ask for `jobq.current()`, called as the functions that they are."""

from __future__ import annotations

import pytest
import shop_jobs as shop
from shop_jobs import COUNT
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

import jobq
from jobq.testing import context, enqueued, enqueued_async


def test_a_handler_that_asks_is_answered(session: Session) -> None:
    with context(state="state", attempt=3, failures=4, kind="fail") as current:
        assert jobq.current() is current
        assert (current.state, current.job.is_last, current.job.kind) == ("state", True, "fail")
        assert not jobq.current().cancelled
        current.cancel()
        assert jobq.current().cancelled
        with pytest.raises(OSError, match="disk full"):
            shop.fail()
    with pytest.raises(jobq.ContextError):
        jobq.current()


def test_contexts_nest(session: Session) -> None:
    with context(state="outer"):
        with context(state="inner"):
            assert jobq.current().state == "inner"
        assert jobq.current().state == "outer"


def test_a_field_that_no_job_has_is_refused() -> None:
    with pytest.raises(TypeError, match="tries"), context(tries=1):  # type: ignore[call-arg]
        pass


def test_a_transaction_is_one_of_the_tests_session(session: Session) -> None:
    with context(session=session):
        assert shop.write(1) == jobq.Ok("wrote 1")
    with context(session=session), pytest.raises(OSError, match="disk full"):
        shop.write_and_fail(2)

    assert session.scalar(COUNT) == 1
    assert len(enqueued(session, shop.note)) == 1


@pytest.mark.anyio
async def test_an_async_transaction_is_one_of_the_tests_session(async_session: AsyncSession) -> None:
    with context(session=async_session):
        assert await shop.write_async(1) == jobq.Ok("wrote 1")

    assert await async_session.scalar(COUNT) == 1
    assert len(await enqueued_async(async_session, shop.note)) == 1


@pytest.mark.anyio
async def test_an_async_handler_may_have_the_tests_sync_session(session: Session) -> None:
    with context(session=session):
        await shop.write_async(1)

    assert session.scalar(COUNT) == 1


@pytest.mark.anyio
async def test_a_plain_handler_cannot_have_an_async_session(async_session: AsyncSession) -> None:
    with context(session=async_session), pytest.raises(jobq.ContextError, match="a Session or Connection, it is"):
        shop.write(1)


def test_without_a_session_there_is_no_transaction() -> None:
    with context(), pytest.raises(jobq.ContextError, match="a Session or Connection, there is none"):
        shop.write(1)
