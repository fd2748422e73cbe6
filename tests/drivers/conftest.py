"""Each driver, in each schema: the parameters of the table."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa
from callers import DRIVERS, SCHEMAS, Caller, made, translated, url_of
from psycopg import sql
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import jobq


@pytest.fixture(scope="session")
def two_schemas_url(server_url: str, admin: psycopg.Connection, template: str) -> Iterator[str]:
    """A database that has the tables of jobq twice; whoever uses it rolls back."""
    name = f"test_{uuid4().hex[:16]}"
    names = sql.Identifier(name), sql.Identifier(template)
    admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(*names))
    url = sa.make_url(server_url).set(database=name)
    with made(url, execution_options=translated("Other")) as engine:
        jobq.migrate(engine)
    yield url.render_as_string(hide_password=False)
    admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(names[0]))


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=SCHEMAS)
def schema(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def caller(two_schemas_url: str, driver: str, schema: str) -> AsyncIterator[Caller]:
    """In a transaction that is rolled back."""
    url = url_of(two_schemas_url, driver)
    if driver.endswith(" async"):
        async_engine = create_async_engine(url, execution_options=translated(schema))
        async with AsyncSession(async_engine) as async_session:
            yield Caller(async_session, schema)
        await async_engine.dispose()
    else:
        with made(url, execution_options=translated(schema)) as engine, Session(engine) as session:
            yield Caller(session, schema)
