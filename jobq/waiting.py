"""Waiting for a job's end, on a connection of the call's own: told by its worker, and by looking."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from time import monotonic
from typing import Any, TypeAlias

import anyio
import psycopg
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from jobq import checks
from jobq.database import async_engine
from jobq.errors import BindError, ContextError, UnknownJobError, WaitTimeoutError
from jobq.model import ENDED, Job, State
from jobq.notify import channel_of_end, is_on
from jobq.reading import job_of
from jobq.source import Source, source_of
from jobq.statements import admin as statements
from jobq.statements import notify
from jobq.which import checked_id

Where: TypeAlias = sa.Engine | AsyncEngine | sa.URL | str
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.02, 1.0  # between two looks; each pause is half as long again
LEAST_PAUSE_SECONDS = 0.02  # anybody may notify: no more than 50 looks a second
CLOSE_SECONDS = 2.0
AGAIN_SECONDS = 20.0  # workers are told again that somebody waits: one may have started meanwhile


def wait_for(engine: Where, id: int, /, *, timeout: timedelta | None = None) -> Job:  # noqa: A002
    """The job once it has ended: done, dead or cancelled. `timeout` None: however long that takes.

    Takes an Engine or a URL, never a session: the wait has a connection of its own, and what a session has not
    committed yet cannot run, so commit first:

        enqueued = jobq.enqueue(session, build_report, 7)
        session.commit()
        job = jobq.wait_for(engine, enqueued.id, timeout=timedelta(seconds=30))

    The worker that records the end tells it; where it cannot be heard (a pooler, JOBQ_NOTIFY=0) it is looked for, at
    first every 20 ms, then once a second.

    Raises: UnknownJobError, for a job that is not there, not committed or deleted; WaitTimeoutError; BindError;
    ContextError, where an event loop runs; what the database raises.
    """
    waiting = wait_for_async(engine, id, timeout=timeout)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(waiting)
    waiting.close()
    raise ContextError("wait_for would block the event loop that runs here: await jobq.wait_for_async(...)")


def wait_for_async(engine: Where, id: int, /, *, timeout: timedelta | None = None) -> Coroutine[Any, Any, Job]:  # noqa: A002
    """`wait_for` for an event loop."""
    if not isinstance(engine, (sa.Engine, AsyncEngine, sa.URL, str)):
        raise BindError(
            f"wait_for takes an Engine or a URL, got {type(engine).__name__}: a session's transaction would stay open"
            " meanwhile, and what it has not committed cannot end (commit, then wait with the engine)"
        )
    limit = None if timeout is None else checks.span("timeout", timeout)
    return _within(replace(source_of(engine, pooler=True), is_own=True), checked_id(id), limit)


async def _within(source: Source, id_: int, limit: timedelta | None) -> Job:
    wait = _Wait(id_)
    with anyio.move_on_after(None if limit is None else limit.total_seconds()):
        async with _connected(source) as connection:
            return await wait.run(connection, source.channel)
    stands = "could not be looked at" if wait.state is None else f"is still {wait.state}"
    raise WaitTimeoutError(f"job {id_} {stands} after {limit} (see: jobq why {id_})", id=id_, state=wait.state)


@asynccontextmanager
async def _connected(source: Source) -> AsyncIterator[AsyncConnection]:
    """A connection in autocommit that belongs to nobody else."""
    engine = async_engine(source, name="jobq wait", isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    async with engine.connect() as connection:
        try:
            yield connection
        finally:  # also in the midst of a statement
            with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_SECONDS):
                await connection.invalidate()


class _Wait:
    """One wait; `state`: where the job stood last."""

    def __init__(self, id_: int) -> None:
        self._id = id_
        self.state: State | None = None

    async def run(self, connection: AsyncConnection, channel: str) -> Job:
        """Look, then wait to be told or for the next look, until it has ended."""
        if await self._has_ended(connection):
            return await self._read(connection)
        driver = await self._listen(connection)
        pause, again_at = FIRST_PAUSE_SECONDS, monotonic()
        while True:
            if driver is not None and monotonic() >= again_at:
                again_at = monotonic() + AGAIN_SECONDS
                await connection.execute(notify.tell(), {"channels": [channel], "texts": [f"awaited|{self._id}"]})
            if await self._has_ended(connection):
                return await self._read(connection)
            await _told_or_after(driver, pause)
            pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)

    async def _has_ended(self, connection: AsyncConnection) -> bool:
        row = (await connection.execute(statements.standing(), {"ids": [self._id]})).one_or_none()
        if row is None:
            raise UnknownJobError(self._id)
        self.state = State(row.state)
        return self.state in ENDED

    async def _read(self, connection: AsyncConnection) -> Job:
        row = (await connection.execute(statements.read_one(), {"id": self._id})).mappings().one_or_none()
        if row is None:
            raise UnknownJobError(self._id)
        return job_of(row)

    async def _listen(self, connection: AsyncConnection) -> psycopg.AsyncConnection[Any] | None:
        """None where nothing can be heard: behind a pooler, whose process ids are not the server's."""
        driver: Any = (await connection.get_raw_connection()).driver_connection
        pid = (await connection.execute(sa.select(sa.func.pg_backend_pid()))).scalar_one()
        if not is_on() or pid != driver.info.backend_pid:
            return None
        await driver.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel_of_end(self._id))))
        return driver  # type: ignore[no-any-return]


async def _told_or_after(driver: psycopg.AsyncConnection[Any] | None, seconds: float) -> None:
    if driver is None:
        await anyio.sleep(seconds)
        return
    began = monotonic()
    async for _ in driver.notifies(timeout=seconds, stop_after=1):
        pass
    if (left := LEAST_PAUSE_SECONDS - (monotonic() - began)) > 0:
        await anyio.sleep(left)
