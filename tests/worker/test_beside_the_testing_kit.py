"""What `jobq.testing` leaves in the tables is what a worker leaves there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from bench import Bench, eventually
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

import jobq
from jobq import tables
from jobq.testing import drain_async

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)


def register(app: jobq.App) -> list[jobq.Kind[...]]:
    """Handlers that end in every way, each plain and async; what is enqueued of them, without arguments."""
    ends: dict[str, tuple[dict[str, Any], Callable[[], Any]]] = {
        "none": ({}, lambda: None),
        "text": ({"keep": timedelta(days=3)}, lambda: "text"),
        "fail": ({}, lambda: jobq.Fail("no match")),
        "skip": ({}, lambda: jobq.Skip()),
        "error": ({"retry": lambda failures, error: HOUR}, lambda: [][0]),
        "last": ({"max_attempts": 1}, lambda: {}["key"]),
        "final": ({"no_retry_on": (ZeroDivisionError,)}, lambda: 1 / 0),
        "number": ({}, lambda: 7),
        "permanent": ({}, lambda: raised(jobq.Permanent("no recipient"))),
        "snooze": ({}, lambda: raised(jobq.Snooze(HOUR))),
        "pause": ({"queue": "paused"}, lambda: raised(jobq.PauseQueue(HOUR, "no credit"))),
        "in_order": ({"queue": "fifo", "retry": lambda failures, error: HOUR}, lambda: [][0]),
    }
    app.queue("fifo", fifo=True)
    handlers: list[jobq.Kind[...]] = [jobq.kind("none", queue="q")]  # its args will not fit
    for name, (options, end) in ends.items():
        handlers.append(app.handler(name, **options)(plain(end)))
        if "queue" not in options:  # two there a worker may claim at once, where the kit meets a pause after the first
            handlers.append(app.handler(f"{name}.async", **options)(in_loop(end)))
    return handlers


def plain(end: Callable[[], Any]) -> Any:
    def handler():  # type: ignore[no-untyped-def]
        return end()

    return handler


def in_loop(end: Callable[[], Any]) -> Any:
    async def handler():  # type: ignore[no-untyped-def]
        return end()

    return handler


def raised(error: Exception) -> None:
    raise error


def rows(bench: Bench) -> list[tuple[Any, ...]]:
    """All jobs by their kinds, but for what differs from run to run."""
    with bench.connect() as connection:
        jobs = jobq.jobs(connection, limit=None)
    return sorted(
        (
            job.kind, job.state, job.queue, job.attempt, job.failures, job.outcome or "", str(job.args),
            [(failure.attempt, failure.error, failure.message) for failure in job.errors],
            round((job.run_at - job.created_at) / HOUR),
            job.expires_at and job.finished_at and round((job.expires_at - job.finished_at) / HOUR),
        )
        for job in jobs
    )  # fmt: skip


def is_over(row: tuple[Any, ...]) -> bool:
    return row[1] != "running" and row[3] == 1


async def test_a_drained_database_looks_as_one_where_a_worker_was(bench: Bench, app: jobq.App) -> None:
    first, *others = register(app)

    def enqueue() -> None:
        with bench.connect() as connection:
            jobq.enqueue(connection, first, surplus=1)
            for handler in others:
                jobq.enqueue(connection, handler)

    enqueue()
    async with bench.working(app):
        await eventually(lambda: all(is_over(job) for job in rows(bench)), "one attempt of each job being over")
    by_worker = rows(bench)
    for table in (tables.jobs, tables.finished_jobs, tables.queues, tables.slots):
        bench.execute(sa.delete(table))

    enqueue()
    async with AsyncSession(create_async_engine(bench.url, poolclass=sa.NullPool)) as session:
        await drain_async(app, session, raise_errors=False)
        await session.commit()

    assert rows(bench) == by_worker
