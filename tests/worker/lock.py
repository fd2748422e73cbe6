"""A table that is locked, as by a migration."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from bench import Bench


@asynccontextmanager
async def locked(bench: Bench) -> AsyncIterator[None]:
    """The table of jobs as a migration locks it. Waited for in a thread: the worker's transactions need the loop."""
    lock = "LOCK TABLE jobq.jobs IN ACCESS EXCLUSIVE MODE"
    with bench.engine.begin() as connection:
        await anyio.to_thread.run_sync(connection.exec_driver_sql, lock)
        yield
