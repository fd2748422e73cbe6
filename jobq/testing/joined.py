"""Sessions for handlers on the test's own connection: what they commit is a savepoint of the test's transaction.

On the connection of a sync driver an AsyncSession never waits, so it needs no event loop of its own, and shares the
transaction of a Session. SQLAlchemy refuses that because it blocks the loop; a test has nothing else to do meanwhile.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
from sqlalchemy.orm import Session


class JoinedSessions:
    """Sessions on one connection, which may be that of a sync or of an async driver."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def session(self) -> Session:
        return Session(self._connection, join_transaction_mode="create_savepoint")

    def expect_end(self, connection: sa.Connection) -> None:
        """What is committed is a savepoint: no end of the connection is to be feared."""

    def async_session(self, **options: Any) -> AsyncSession:
        options = {"join_transaction_mode": "create_savepoint", **options}
        if self._connection.dialect.is_async:
            return AsyncSession(AsyncConnection(AsyncEngine(self._connection.engine), self._connection), **options)
        return JoinedSession(JoinedConnection(_async_engine(self._connection), self._connection), **options)


class JoinedConnection(AsyncConnection):
    """On a sync connection. `execute` takes results as they are: cursors of sync drivers are closed without waiting."""

    async def execute(self, *args: Any, **options: Any) -> Any:
        return await self.run_sync(lambda sync: sync.execute(*args, **options))


class JoinedSession(AsyncSession):
    """On a sync connection, see there."""

    async def execute(self, *args: Any, **options: Any) -> Any:
        return await self.run_sync(lambda sync: sync.execute(*args, **options))

    async def connection(self, *args: Any, **options: Any) -> AsyncConnection:
        sync: sa.Connection = await self.run_sync(lambda session: session.connection(*args, **options))
        return JoinedConnection(_async_engine(sync), sync)


def _async_engine(connection: sa.Connection) -> AsyncEngine:
    """Of a sync engine, which SQLAlchemy tells from others when an AsyncEngine is made, and then no more."""
    dialect: Any = connection.engine.dialect
    dialect.is_async = True
    try:
        return AsyncEngine(connection.engine)
    finally:
        del dialect.is_async
