"""Ends of jobs that were written since their claim take a second statement, which may fail when the first has not."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from bench import Bench, eventually

import jobq
from jobq.store import ending

pytestmark = pytest.mark.anyio
MOVED = "UPDATE jobq.jobs SET meta = '{\"n\": 1}' WHERE id = (SELECT min(id) FROM jobq.jobs)"


@pytest.mark.parametrize("code", ["57014", "22023"], ids=["cancelled", "refused"])
async def test_what_the_first_has_written_counts_as_well_ended(
    bench: Bench, app: jobq.App, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    begun, gate, failures = [], anyio.Event(), []
    finish = ending.finish

    def fails_once(connection: sa.Connection, endings: Any) -> set[int]:
        if not failures:
            failures.append(len(endings))
            connection.exec_driver_sql(f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{code}'; END $$")
        return finish(connection, endings)

    @app.handler("k")
    async def handler() -> None:
        begun.append(1)
        await gate.wait()

    monkeypatch.setattr(ending, "finish", fails_once)
    bench.enqueue_many(handler, 3)

    async with bench.working(app) as worker:
        await eventually(lambda: len(begun) == 3, "the three")
        bench.execute(MOVED)
        gate.set()
        await eventually(lambda: worker.stats().ok == 3, "their ends")
        assert (worker.stats().refused, worker.stats().lost, failures) == (0, 0, [1])
