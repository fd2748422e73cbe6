"""The application of the chaos tests. Each run of a handler is written down, at its start, in its own transaction."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from uuid import UUID, uuid4

import anyio
import psycopg
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession

import jobq

LEDGER_URL = "CHAOS_LEDGER_URL"  # where the runs are written down: past any proxy between worker and server
TABLES = """
CREATE TABLE effects (run uuid PRIMARY KEY, job_id bigint NOT NULL, attempt int NOT NULL, pid int NOT NULL,
                      at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE books (job_id bigint NOT NULL, attempt int NOT NULL);
"""
WRITE = "INSERT INTO effects (run, job_id, attempt, pid) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
OPTIONS = "-c default_transaction_read_only=off"

app = jobq.App()


class Ledger:
    """The table `effects`. A run is written down once, however often the server goes away meanwhile."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection | None = None

    async def began(self) -> None:
        """Blocks the loop for the one statement, so that jobs claimed together have all begun a moment later."""
        run = uuid4()
        while True:
            try:
                return self._write(run)
            except (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction):  # the latter of a standby
                self._connection = None
                await anyio.sleep(0.05)

    def _write(self, run: UUID) -> None:
        job = jobq.current().job
        if self._connection is None:
            self._connection = psycopg.connect(self._url, autocommit=True, connect_timeout=2, options=OPTIONS)
        self._connection.execute(WRITE, [run, job.id, job.attempt, os.getpid()])

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


@app.lifespan
async def ledger() -> AsyncIterator[Ledger]:
    book = Ledger(os.environ[LEDGER_URL])
    yield book
    book.close()


async def began() -> None:
    await jobq.current().state.began()


def is_first() -> bool:
    return jobq.current().job.attempt == 1


@app.handler("nap", max_attempts=50)
async def nap(seconds: float) -> None:
    await began()
    await anyio.sleep(seconds)


@app.handler("long_at_first", max_attempts=50)
async def long_at_first() -> None:
    """Longer than any test in the first attempt; at once in every other."""
    await began()
    if is_first():
        await anyio.sleep(600)


@app.handler("block_at_first", max_attempts=50)
async def block_at_first(seconds: float, then: float, fails: bool) -> str:
    """Stop the whole loop in the first attempt, so that its end is decided before anything else is noticed.

    By a moment and not by a span: a freeze that comes before the sleep has begun must not put its end off.
    """
    until = time.monotonic() + seconds
    await began()
    if not is_first():
        await anyio.sleep(then)
        return "later"
    time.sleep(max(0.0, until - time.monotonic()))  # noqa: ASYNC251
    if fails:
        raise ValueError("the first attempt failed, too late")
    return "first"


@app.handler("die")
async def die() -> None:
    await began()
    os.kill(os.getpid(), signal.SIGKILL)


@app.handler("swallow", max_attempts=50)
async def swallow() -> None:
    await began()
    while True:
        with suppress(BaseException):
            await anyio.sleep(1)


@app.handler("in_thread", max_attempts=50)
def in_thread(seconds: float) -> None:
    with psycopg.connect(os.environ[LEDGER_URL], autocommit=True) as connection:
        job = jobq.current().job
        connection.execute(WRITE, [uuid4(), job.id, job.attempt, os.getpid()])
    time.sleep(seconds)


@app.handler("hang_at_first", max_attempts=50)
async def hang_at_first() -> None:
    await began()
    if is_first():
        time.sleep(10**6)  # noqa: ASYNC251


@app.handler("book", max_attempts=50)
async def book(at_first: str) -> None:
    """Work in one transaction with the completion. `at_first`: die inside of it, or freeze right before its COMMIT."""
    await began()
    job = jobq.current().job
    async with jobq.current().transaction() as session:
        await session.execute(
            sa.text("INSERT INTO books (job_id, attempt) VALUES (:id, :attempt)"),
            {"id": job.id, "attempt": job.attempt},
        )
        if at_first == "die" and is_first():
            os.kill(os.getpid(), signal.SIGKILL)
        if at_first == "freeze" and is_first():
            _freeze_before_commit(session)


def _freeze_before_commit(session: AsyncSession) -> None:
    """By then the completion, the last write before COMMIT, has been sent and its locks are held."""
    sa.event.listen(session.sync_session, "before_commit", lambda _: os.kill(os.getpid(), signal.SIGSTOP))
