"""Statements that go past SQLAlchemy: their binds and their errors are what it would have made of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from jobq.asking import ask
from jobq.statements.binds import TEXTS, param
from jobq.store.rows import OneStatement, Query, Rows

pytestmark = pytest.mark.anyio
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
LISTS = st.lists(
    st.none() | TEXT | st.sampled_from(['"', "\\", "{a,b}", "NULL", "null", "", " ", ",", "%s", "'"]), min_size=1
)


def first(rows: Rows) -> Any:
    return rows[0][0]


@OneStatement
def echo(texts: list[str | None]) -> Query[list[str | None]]:
    """The same texts."""
    return Query(sa.select(param("texts", TEXTS)), {"texts": texts}, first)


@OneStatement
def numbers(values: list[int]) -> Query[list[int]]:
    return Query(sa.select(param("ns", ARRAY(sa.BigInteger))), {"ns": values}, first)


@OneStatement
def divide(by: int) -> Query[int]:
    return Query(sa.select(sa.literal_column("1") / param("by", sa.Integer)), {"by": by}, first)


@OneStatement
def sleep(seconds: float) -> Query[Any]:
    return Query(sa.select(sa.func.pg_sleep(param("seconds", sa.Double))), {"seconds": seconds}, first)


@pytest.fixture
async def own(database_url: str) -> AsyncIterator[AsyncConnection]:
    engine = create_async_engine(database_url, isolation_level="AUTOCOMMIT", hide_parameters=True)
    async with engine.connect() as connection:
        yield connection
    await engine.dispose()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=LISTS)
def test_an_array_of_any_texts_comes_back(connection: sa.Connection, texts: list[str | None]) -> None:
    assert echo(connection, texts) == texts


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_an_array_of_any_numbers_comes_back(connection: sa.Connection, values: list[int]) -> None:
    assert numbers(connection, values) == values


async def test_what_is_asked_without_a_greenlet_is_the_same(own: AsyncConnection) -> None:
    texts = ['"', "\\", "{a,b}", "NULL", None, "", "%s", "é\n"]

    assert await ask(own, echo, texts) == texts
    assert await own.run_sync(echo, texts) == texts
    assert (echo.__name__, echo.__doc__) == ("echo", "The same texts.")


async def test_an_error_is_that_of_sqlalchemy_and_the_connection_stays(own: AsyncConnection) -> None:
    found = []
    for way in (ask(own, divide, 0), own.run_sync(divide, 0)):
        with pytest.raises(sa.exc.DBAPIError) as raised:
            await way
        found.append((type(raised.value), raised.value.orig.sqlstate, raised.value.connection_invalidated))  # type: ignore[union-attr]

    assert found == [(sa.exc.DataError, "22012", False)] * 2
    assert await ask(own, divide, 1) == 1


async def test_a_connection_that_is_lost_meanwhile_is_invalid(own: AsyncConnection, engine: sa.Engine) -> None:
    pid = await own.scalar(sa.func.pg_backend_pid())
    with engine.connect() as other:
        other.execute(sa.select(sa.func.pg_terminate_backend(pid)))

    with pytest.raises(sa.exc.OperationalError) as raised:
        await ask(own, divide, 1)

    assert raised.value.connection_invalidated
    assert own.invalidated


async def test_a_connection_whose_answer_was_not_awaited_is_invalid(own: AsyncConnection) -> None:
    with anyio.move_on_after(0.1):
        await ask(own, sleep, 30)

    assert own.invalidated
