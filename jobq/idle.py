"""Connections of a worker between two statements: open and at hand, as many at a time as there may be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import anyio
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

Ended = Callable[[Any], bool]


class IdleConnections:
    """In autocommit. To take one from the engine's pool and give it back costs as much as a statement; so they stay.

    At most `size` are out or idle here, as many as the engine's pool has, and all who use that ask here for a place.
    """

    def __init__(self, engine: AsyncEngine, size: int, *, has_ended: Ended) -> None:
        self._engine = engine
        self._has_ended = has_ended
        self._places = anyio.Semaphore(size, fast_acquire=True)
        self._idle: list[tuple[AsyncConnection, float]] = []
        self._doubtful_until = 0.0

    def at_hand(self) -> AsyncConnection | None:
        """What `take` gives, if it need not wait for that."""
        if not self._idle or not self._is_good(*self._idle[-1]):
            return None
        try:
            self._places.acquire_nowait()
        except anyio.WouldBlock:
            return None
        return self._idle.pop()[0]

    async def take(self) -> AsyncConnection:
        """One that is good as far as can be told without asking the server. Waits for a place; connects if it must."""
        await self._places.acquire()
        try:
            while self._idle:
                connection, since = self._idle.pop()
                if self._is_good(connection, since):
                    return connection
                await connection.invalidate()
                await close(connection)
            return await self._engine.connect()
        except BaseException:
            self._places.release()
            raise

    async def give_back(self, connection: AsyncConnection, *, is_good: bool) -> None:
        """It has done its statement; one that is not good is closed."""
        self._places.release()
        if is_good:
            self._idle.append((connection, monotonic()))
        else:
            await close(connection)

    @asynccontextmanager
    async def room_in_the_pool(self) -> AsyncIterator[None]:
        """For another user of the engine: a place, and with it a connection that its pool can give out."""
        async with self._places:
            if self._idle:
                await close(self._idle.pop()[0])
            yield

    def doubt(self) -> None:
        """What has been idle since before now is not trusted any more."""
        self._doubtful_until = monotonic()

    def _is_good(self, connection: AsyncConnection, since: float) -> bool:
        if since < self._doubtful_until or (sync := connection.sync_connection) is None:
            return False
        return not self._has_ended(sync.connection.driver_connection)

    async def let_go(self) -> None:
        """Give all of them to the engine's pool."""
        while self._idle:
            await close(self._idle.pop()[0])


async def close(connection: AsyncConnection) -> None:
    """Also when the task is cancelled: else it would be lost to the pool."""
    await asyncio.shield(asyncio.ensure_future(connection.close()))
