"""Deletes what has been kept for its time: the leader, `jobq clean` and an application's own job all do it by this."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from time import monotonic
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from jobq.errors import BindError
from jobq.faults import sqlstate
from jobq.store import cleaning as store
from jobq.store.leading import Office

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

MOST, LEAST = 10_000, 100  # rows a chunk
SLOW_SECONDS, QUICK_SECONDS = 0.5, 0.1
TOO_SLOW = ("57014", "55P03", "40")  # statement_timeout, a lock, a serialization failure: a smaller chunk may pass


class Cleaning:
    """One pass: chunks of 10 000, smaller while they are slow, each a transaction of its own."""

    def __init__(self, office: Office | None = None) -> None:
        self.size = MOST
        self.pause_seconds = 0.0  # before the next chunk: the server works for others half of the time
        self.is_over = False
        self._office = office
        self._since = store.START

    def step(self, connection: sa.Connection) -> int:
        """Delete and commit one chunk; how many jobs. Raises what the database says even of the smallest chunk."""
        began, asked = monotonic(), self.size
        try:
            chunk = store.delete_expired(connection, since=self._since, most=asked, office=self._office)
            connection.commit()
        except DBAPIError as error:
            connection.rollback()
            if self.size == LEAST or not (sqlstate(error) or "").startswith(TOO_SLOW):
                raise
            self.took(SLOW_SECONDS * 2)
            return 0
        self.took(monotonic() - began)
        self._since, self.is_over = chunk.upto, chunk.deleted < asked
        return chunk.deleted

    def took(self, seconds: float) -> None:
        """Choose the size of the next chunk, and the pause before it."""
        if seconds > SLOW_SECONDS:
            self.size = max(self.size // 2, LEAST)
        elif seconds < QUICK_SECONDS:
            self.size = min(self.size * 2, MOST)
        self.pause_seconds = min(seconds, 1.0)


def clean(engine: sa.Engine, /) -> int:
    """Delete every job that has been kept for its time; how many they were. Workers do it by themselves.

    In chunks, each a transaction of its own on a connection of this call, so that nobody waits for it; that is why it
    takes an Engine and no session. May run at any time, several times at once, and inside of a handler.

    Raises: BindError.
    """
    if not isinstance(engine, sa.Engine):
        raise BindError(f"clean takes an Engine, got {type(engine).__name__} (AsyncEngine: clean_async)")
    cleaning, deleted = Cleaning(), 0
    with engine.connect() as connection:
        connection = connection.execution_options(isolation_level="READ COMMITTED")
        while not cleaning.is_over:
            time.sleep(cleaning.pause_seconds)
            deleted += cleaning.step(connection)
    return deleted


def clean_async(engine: AsyncEngine, /) -> Coroutine[Any, Any, int]:
    """`clean` for an AsyncEngine."""
    if not hasattr(engine, "sync_engine"):
        raise BindError(f"clean_async takes an AsyncEngine, got {type(engine).__name__} (Engine: clean)")
    return _clean_async(engine)


async def _clean_async(engine: AsyncEngine) -> int:
    import anyio

    cleaning, deleted = Cleaning(), 0
    async with engine.connect() as connection:
        connection = await connection.execution_options(isolation_level="READ COMMITTED")
        while not cleaning.is_over:
            await anyio.sleep(cleaning.pause_seconds)
            deleted += await connection.run_sync(cleaning.step)
    return deleted
