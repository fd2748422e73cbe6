"""A table that handlers write to, in the test's transaction, and sessions of every kind on it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from jobq.testing.joined import JoinedSessions

EFFECTS = sa.text("CREATE TABLE effects (n int PRIMARY KEY)")


@pytest.fixture
def session(connection: sa.Connection) -> Session:
    """As the pytest plugin's: may commit, and is rolled back."""
    connection.execute(EFFECTS)
    return JoinedSessions(connection).session()


@pytest.fixture(params=["joined", "postgresql+psycopg", "postgresql+asyncpg"])
async def async_session(request: pytest.FixtureRequest) -> AsyncIterator[AsyncSession]:
    """On a sync connection, as the pytest plugin's, or on an async driver's."""
    if request.param == "joined":
        connection = request.getfixturevalue("connection")
        connection.execute(EFFECTS)
        yield JoinedSessions(connection).async_session()
        return
    url = sa.make_url(request.getfixturevalue("shared_database_url")).set(drivername=request.param)
    engine = create_async_engine(url, poolclass=sa.NullPool)
    async with AsyncSession(engine) as session:
        await session.execute(EFFECTS)
        yield session
    await engine.dispose()
