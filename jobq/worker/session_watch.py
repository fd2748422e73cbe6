"""Ends the waits of handlers for a server that knows nothing of their connection any more."""

from __future__ import annotations

import logging
from datetime import timedelta

import anyio
from anyio.abc import TaskStatus

from jobq.database import Database
from jobq.store import sessions as store
from jobq.worker.handler_engines import HandlerEngines
from jobq.worker.link import Link
from jobq.worker.loops import every

logger = logging.getLogger("jobq.worker")
INTERVAL = timedelta(seconds=10)


class SessionWatch:
    """Every 10 s: whether the server still has the sessions of transactions that have been open for as long.

    How long a statement of a handler's own takes is no sign of anything, and where a middle box acknowledges what it
    does not deliver, the kernel sees nothing. Over another connection the server can be asked.
    """

    def __init__(self, database: Database, link: Link, engines: HandlerEngines, *, stop: anyio.Event) -> None:
        self._database = database
        self._link = link
        self._engines = engines
        self._stop = stop

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await every(INTERVAL, self.run_once, service="session watch", link=self._link, stop=self._stop)

    async def run_once(self) -> int:
        """One look; how many connections were without a session."""
        in_use = self._engines.in_use_for(INTERVAL)
        ended = await self._database.run(store.ended, set(in_use.values())) if in_use else set()
        lost = [connection for connection, session in in_use.items() if session in ended]
        for connection in lost:
            self._engines.end(connection)
        if lost:
            logger.warning("%d transactions of handlers are lost: the server has ended their sessions", len(lost))
        return len(lost)
