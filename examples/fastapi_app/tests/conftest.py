"""A database of this run's own beside the shop's, made by the shop's own migrations; each test is rolled back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import httpx
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlmodel.ext.asyncio.session import AsyncSession

from shop.database import get_session
from shop.main import app
from shop.settings import database_url


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def test_database() -> Iterator[sa.URL]:
    server = sa.create_engine(database_url(), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    name = f"shop_test_{uuid4().hex[:12]}"
    with server.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
        try:
            url = database_url().set(database=name)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("DATABASE_URL", url.render_as_string(hide_password=False))
                command.upgrade(Config(toml_file="pyproject.toml"), "head")
            yield url
        finally:
            connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
async def connection(test_database: sa.URL) -> AsyncIterator[AsyncConnection]:
    engine = create_async_engine(test_database, poolclass=sa.NullPool)
    async with engine.connect() as connection:
        transaction = await connection.begin()
        yield connection
        await transaction.rollback()


@pytest.fixture
async def session(connection: AsyncConnection) -> AsyncIterator[AsyncSession]:
    async with AsyncSession(connection) as session:
        yield session


@pytest.fixture
async def client(connection: AsyncConnection) -> AsyncIterator[httpx.AsyncClient]:
    async def session_of_request() -> AsyncIterator[AsyncSession]:
        async with AsyncSession(connection, join_transaction_mode="create_savepoint") as session:
            yield session

    app.dependency_overrides[get_session] = session_of_request
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop") as client:
        yield client
    app.dependency_overrides.clear()
