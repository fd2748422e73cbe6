"""The connections of handlers' transactions: the server's own settings, and an end to every wait that is not theirs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import Any

import anyio
import psycopg
import sqlalchemy as sa
import sqlalchemy.exc as sa_exc
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
from sqlalchemy.orm import Session

from jobq.database import CONNECT_LIMIT, async_engine, has_ended, sync_engine
from jobq.session_settings import session_settings
from jobq.source import Source
from jobq.store import sessions as session_store
from jobq.worker.deadlines import Deadlines

# Longer, and the connection is lost, and the COMMIT looked for: whether it has happened is a question, not an error.
END_SECONDS = 30.0
PING_SECONDS = 5.0
TRUSTED_SECONDS = 5.0  # so long after its last answer a connection is taken to have one more
SESSION = "jobq_session"


class HandlerEngines:
    """Engines for the transactions of handlers, made when first used.

    Bounded are connecting, COMMIT and ROLLBACK, and the look whether a connection that was idle for long still has a
    server behind it. How long a statement of a handler's own takes is the handler's affair.
    """

    def __init__(self, source: Source, *, name: str, size: int) -> None:
        self._source = replace(source, made=self._begin_connecting)
        self._name = name
        self._options: dict[str, Any] = {"pool_size": size, "max_overflow": 0}
        self._deadlines = Deadlines()
        self._in_use: dict[Any, tuple[float, session_store.Session]] = {}
        self._sync: sa.Engine | None = None
        self._async: AsyncEngine | None = None

    @property
    def sync(self) -> sa.Engine:
        if self._sync is None:
            self._sync = self._guarded(sync_engine(self._source, name=self._name, **self._options))
        return self._sync

    @property
    def asynchronous(self) -> AsyncEngine:
        if self._async is None:
            self._async = async_engine(self._source, name=self._name, **self._options)
            self._guarded(self._async.sync_engine)
        return self._async

    def session(self) -> Session:
        return Session(self.sync)

    def async_session(self) -> AsyncSession:
        return AsyncSession(self.asynchronous)

    def expect_end(self, connection: sa.Connection) -> None:
        """Its transaction is about to end: a limit from now on until it is back in the pool."""
        if not connection.closed and not connection.invalidated:
            self._deadlines.set(connection.connection.driver_connection, END_SECONDS)

    def in_use_for(self, span: timedelta) -> dict[Any, session_store.Session]:
        """The connections of psycopg that handlers have had for that long, with their sessions on the server."""
        since = monotonic() - span.total_seconds()
        return {connection: session for connection, (began, session) in list(self._in_use.items()) if began <= since}

    def end(self, connection: Any) -> None:
        """Whoever waits there for an answer meets a lost connection."""
        self._deadlines.set(connection, 0)

    async def close(self) -> None:
        """Close every connection that is not in use."""
        if self._sync is not None:
            self._sync.dispose()
        if self._async is not None:
            with anyio.move_on_after(2, shield=True):
                await self._async.dispose()
        self._deadlines.close()

    def _guarded(self, engine: sa.Engine) -> sa.Engine:
        if not self._source.pooler:
            event.listen(engine, "connect", _set_for_session)
        event.listen(engine, "checkout", partial(self._look_at, engine.dialect))
        event.listen(engine, "begin", self._go_on)
        event.listen(engine, "rollback", self.expect_end)
        event.listen(engine, "checkin", self._take_back)
        event.listen(engine, "close", self._let_go)
        return engine

    def _begin_connecting(self, connection: Any) -> None:
        """Before SQLAlchemy's own questions, which connections that are made at the same time ask one after another."""
        self._deadlines.watch(connection)
        self._deadlines.set(connection, CONNECT_LIMIT.total_seconds())

    def _look_at(self, dialect: sa.Dialect, dbapi_connection: Any, record: Any, _proxy: Any) -> None:
        """When one is lost while it was idle, have the pool make anew all that it has.

        A new one is let through: two refusals in a row SQLAlchemy takes for wrong use.
        """
        self._deadlines.lift(record.driver_connection)
        idle_since = record.info.pop("idle_since", None)
        if idle_since is not None and not self._is_good(dialect, dbapi_connection, record, idle_since):
            raise sa_exc.InvalidatePoolError
        if SESSION in record.info:
            self._in_use[record.driver_connection] = monotonic(), record.info[SESSION]

    def _is_good(self, dialect: sa.Dialect, dbapi_connection: Any, record: Any, idle_since: float) -> bool:
        if has_ended(record.driver_connection):
            return False
        return monotonic() - idle_since < TRUSTED_SECONDS or self._answers(dialect, dbapi_connection, record)

    def _answers(self, dialect: sa.Dialect, dbapi_connection: Any, record: Any) -> bool:
        self._deadlines.set(record.driver_connection, PING_SECONDS)
        try:
            return dialect.do_ping(dbapi_connection)
        except psycopg.Error:
            return False
        finally:
            self._deadlines.lift(record.driver_connection)

    def _go_on(self, connection: sa.Connection) -> None:
        """One transaction has ended, and the next begins, without the pool in between."""
        if not connection.closed and not connection.invalidated:
            self._deadlines.lift(connection.connection.driver_connection)

    def _take_back(self, _connection: Any, record: Any) -> None:
        self._deadlines.lift(record.driver_connection)
        self._in_use.pop(record.driver_connection, None)
        record.info["idle_since"] = monotonic()

    def _let_go(self, _connection: Any, record: Any) -> None:
        self._in_use.pop(record.driver_connection, None)
        self._deadlines.forget(record.driver_connection)


def _set_for_session(dbapi_connection: Any, record: Any) -> None:
    """In one round trip what is asked of the server for this session, and which one it is."""
    columns, parameters = session_settings()
    began = "SELECT backend_start FROM pg_catalog.pg_stat_get_activity(pg_backend_pid())"
    pid = record.driver_connection.info.backend_pid
    was_autocommit = dbapi_connection.autocommit
    dbapi_connection.autocommit = True
    cursor = dbapi_connection.cursor()
    cursor.execute(f"SELECT ({began}), {columns} WHERE pg_backend_pid() = %s", [*parameters, pid])
    if (row := cursor.fetchone()) is not None:
        record.info[SESSION] = pid, row[0]
    cursor.close()
    dbapi_connection.autocommit = was_autocommit
