"""Handlers that work in `jobq.current().transaction()`, for the tests of it."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from bench import HOUR, Bench

import jobq

WORK = sa.text("INSERT INTO effects VALUES (1)")
LATER = {"retry": lambda failures, error: HOUR}
both = pytest.mark.parametrize("where", ["loop", "thread"])


def kept(bench: Bench) -> int:
    return int(bench.execute("SELECT count(*) FROM effects")[0][0])


def register(app: jobq.App, where: str, inside: Any = None, after: Any = None, **options: Any) -> Any:
    """A handler that works in its transaction, calls `inside(session)` there and `after()` behind it."""

    async def in_the_loop():  # type: ignore[no-untyped-def]
        async with jobq.current().transaction() as session:
            await session.execute(WORK)
            if inside:
                inside(session)
        return after() if after else None

    def in_a_thread():  # type: ignore[no-untyped-def]
        with jobq.current().transaction() as session:
            session.execute(WORK)
            if inside:
                inside(session)
        return after() if after else None

    return app.handler("k", **{**LATER, **options})(in_the_loop if where == "loop" else in_a_thread)
