"""The application of the attacks. Each run writes down its beginning and its effect, and returns its attempt."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import anyio
import psycopg
import seeds
import sqlalchemy as sa
from record import NOTE

import jobq

POINT = "ATTACK_POINT"  # where this process is to be stopped
HOW = "ATTACK_HOW"  # by which signal; by default it is killed
SEED = "ATTACK_SEED"  # the fault that it has, of seeds.py
TICKS = "ATTACK_TICKS"  # whether it has a schedule, each second
NOW = timedelta(0)

app = jobq.App()
app.queue("pair", concurrency=2)
app.queue("line", fifo=True)
has_work = threading.Event()


class Ledger:
    """The table `runs`, each row of it in a transaction of its own."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._lock = threading.Lock()

    def note(self, what: str) -> None:
        job = jobq.current().job
        with self._lock:
            self._connection.execute(NOTE, [job.id, job.attempt, os.getpid(), what, time.time()])

    def close(self) -> None:
        self._connection.close()


@app.lifespan
async def ledger() -> AsyncIterator[Ledger]:
    book = Ledger(os.environ["CHAOS_LEDGER_URL"])
    yield book
    book.close()


def reach(point: str) -> None:
    """The process ends, or stands still, here, if it was told to."""
    if os.environ.get(POINT) == point:
        os.kill(os.getpid(), getattr(signal, os.environ.get(HOW, "SIGKILL")))
        time.sleep(0.1)  # a thread would go on until the signal has reached the process


def began() -> str:
    jobq.current().state.note("began")
    has_work.set()
    if "early_end" in os.environ.get(SEED, ""):
        seeds.end_now(os.environ["CHAOS_LEDGER_URL"])
    reach("running")
    return str(jobq.current().job.attempt)


def effect() -> None:
    reach("before the effect")
    jobq.current().state.note("effect")
    reach("after the effect")


@app.handler("work", max_attempts=50)
async def work(seconds: float, again: float | None = None) -> str:
    """`again`: how long it takes in all attempts but the first, where that is not the same."""
    attempt = began()
    await anyio.sleep(seconds if again is None or attempt == "1" else again)
    effect()
    return attempt


@app.handler("block", max_attempts=50)
async def block(seconds: float, again: float | None = None) -> str:
    """Holds the event loop in its first attempt, so that its end is decided before the worker can notice anything."""
    attempt = began()
    if attempt == "1":
        time.sleep(seconds)  # noqa: ASYNC251
    else:
        await anyio.sleep(seconds if again is None else again)
    effect()
    return attempt


@app.handler("plain", max_attempts=50)
def plain(seconds: float) -> str:
    attempt = began()
    time.sleep(seconds)
    effect()
    return attempt


@app.handler("book", max_attempts=50)
async def book(seconds: float, again: float | None = None) -> str:
    """Its effect and its completion are one transaction."""
    attempt = began()
    async with jobq.current().transaction() as session:
        job = {"id": jobq.current().job.id, "attempt": jobq.current().job.attempt}
        await session.execute(sa.text("INSERT INTO books (job_id, attempt) VALUES (:id, :attempt)"), job)
        await anyio.sleep(seconds if again is None or attempt == "1" else again)
        reach("inside the transaction")
        sa.event.listen(session.sync_session, "before_commit", lambda _: reach("before the COMMIT"))
    jobq.current().state.note("over")
    return attempt


@app.handler("plain_book", max_attempts=50)
def plain_book(seconds: float, again: float | None = None) -> str:
    """`book` in a thread: no cancellation comes between it and its COMMIT."""
    attempt = began()
    with jobq.current().transaction() as session:
        job = {"id": jobq.current().job.id, "attempt": jobq.current().job.attempt}
        session.execute(sa.text("INSERT INTO books (job_id, attempt) VALUES (:id, :attempt)"), job)
        time.sleep(seconds if again is None or attempt == "1" else again)
        reach("inside the transaction")
    jobq.current().state.note("over")
    return attempt


@app.handler("fail", max_attempts=3, retry=lambda failures, error: NOW)
async def fail() -> None:
    began()
    jobq.current().state.note("failed")
    raise ValueError("as it always does")


@app.handler("retried", max_attempts=50, retry=lambda failures, error: timedelta(seconds=1))
async def retried(seconds: float) -> str:
    """Fails once, and is due again a second later."""
    attempt = began()
    if attempt == "1":
        jobq.current().state.note("failed")
        raise ValueError("once")
    await anyio.sleep(seconds)
    effect()
    return attempt


@app.handler("once", max_attempts=1)
async def once(seconds: float) -> str:
    attempt = began()
    await anyio.sleep(seconds)
    effect()
    return attempt


@app.handler("tick", queue="ticks", max_attempts=50)
async def tick() -> str:
    """Not promised by anybody, so it has no effect; it meets no point either."""
    jobq.current().state.note("began")
    jobq.current().state.note("over")
    return str(jobq.current().job.attempt)


if TICKS in os.environ:
    app.schedule(jobq.every(timedelta(seconds=1), name="each_second"), tick)


def at_work(point: str) -> None:
    if has_work.is_set():
        reach(point)


seeds.plant(os.environ.get(SEED, ""))
seeds.mark_points(reach, at_work)
