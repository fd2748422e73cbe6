"""A worker on tables in a schema of the application's choice, told by SQLAlchemy's own schema_translate_map."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from bench import NEVER, Bench, Effects, eventually
from sqlalchemy.ext.asyncio import create_async_engine

import jobq

pytestmark = pytest.mark.anyio

ELSEWHERE = {"schema_translate_map": {"jobq": "Other"}}


def outcomes(engine: sa.Engine, ids: list[int]) -> list[str] | None:
    """Of all the jobs, once each has one: the text of a job that completed itself is written a little later."""
    with engine.connect() as connection:
        jobs = [jobq.get(connection, id_) for id_ in ids]
    said = [job.outcome for job in jobs if job is not None and job.outcome is not None]
    return said if len(said) == len(ids) else None


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_f59_a_worker_lives_in_the_schema_that_its_engine_translates_to(
    bench: Bench, app: jobq.App, kind: str
) -> None:
    seen = Effects()

    @app.handler("loop")
    async def loop() -> str:
        async with jobq.current().transaction() as session:
            seen.add(await session.scalar(sa.select(jobq.tables.workers.c.name)))
        return "fine"

    thread: Any = app.handler("thread", max_attempts=1)(lambda: 1 / 0)
    bench.move_tables("Other")
    engine = bench.engine.execution_options(**ELSEWHERE)
    make: Any = sa.create_engine if kind == "sync" else create_async_engine

    async with bench.working(app, make(bench.url, execution_options=ELSEWHERE), poll_interval=NEVER, name="w1"):
        await bench.until_listening()
        with engine.begin() as connection:
            ids = [jobq.enqueue(connection, handler).id for handler in (loop, thread)]
        said = await eventually(lambda: outcomes(engine, ids), "both jobs' outcomes")

    assert said == ["ok: fine", "err: ZeroDivisionError: division by zero"]
    assert seen.seen == ["w1"]
