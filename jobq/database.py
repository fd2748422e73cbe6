"""The worker's own connections: few, in autocommit, bounded in time, and never those of handlers."""

from __future__ import annotations

import selectors
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

import anyio
import sqlalchemy as sa
import sqlalchemy.exc as sa_exc
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from jobq.faults import spoils_connection

P = ParamSpec("P")
R = TypeVar("R")

STATEMENT_LIMIT = timedelta(seconds=10)
ANSWER_LIMIT = timedelta(seconds=15)  # beyond it the server is taken for lost, frozen or unreachable
# What a connection has to tell the kernel so that a cut cable is seen: libpq, "Parameter Key Words".
KEEPALIVE: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "connect_timeout": 5,
}
# A plan cached while `jobs` was tiny took 130 ms a claim after a burst, 0.5 ms with the two switches.
SESSION_SETTINGS = {
    "statement_timeout": f"{STATEMENT_LIMIT.total_seconds():.0f}s",
    "idle_in_transaction_session_timeout": "5s",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
}


class Database:
    """Runs store functions on the worker's own pool.

    Single statements run in autocommit: a client frozen between a statement and its COMMIT would hold locks.
    Raises ConnectionError when the server does not answer in time; the connection is then closed.
    """

    def __init__(
        self, url: sa.URL, connect_args: dict[str, Any], *, name: str, size: int, options: dict[str, Any]
    ) -> None:
        self.url = url
        self.size = size
        self._engine = own_engine(url, connect_args, name=name, size=size, options=options)
        self._autocommit = self._engine.execution_options(isolation_level="AUTOCOMMIT")

    async def run(self, function: Callable[Concatenate[sa.Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """One store function in autocommit."""
        with _answer_within(ANSWER_LIMIT):
            async with self._autocommit.connect() as connection:
                return await _run(connection, function, *args, **kwargs)
        raise ConnectionError(f"the server did not answer within {ANSWER_LIMIT.total_seconds():.0f} s")

    async def transaction(
        self, function: Callable[Concatenate[sa.Connection, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """One store function in one transaction."""
        with _answer_within(ANSWER_LIMIT):
            async with self._engine.begin() as connection:
                return await _run(connection, function, *args, **kwargs)
        raise ConnectionError(f"the server did not answer within {ANSWER_LIMIT.total_seconds():.0f} s")

    async def close(self) -> None:
        """Close every connection, within 2 seconds."""
        with anyio.move_on_after(2, shield=True):
            await self._engine.dispose()


def own_engine(
    url: sa.URL, connect_args: dict[str, Any], *, name: str, size: int, options: dict[str, Any]
) -> AsyncEngine:
    """An engine for the worker's own statements: READ COMMITTED whatever the application's engine has.

    The options are those of the engine itself: in SQLAlchemy 2.0 `execution_options` cannot be called on its result.
    """
    engine = create_async_engine(
        url,
        connect_args=connect_arguments(url, connect_args, name=name),
        isolation_level="READ COMMITTED",
        execution_options=options,
        pool_size=size,
        max_overflow=0,
        pool_timeout=ANSWER_LIMIT.total_seconds(),
        hide_parameters=True,
    )
    use_settings(engine.sync_engine)
    event.listen(engine.sync_engine, "checkout", _refuse_ended)
    return engine


def connect_arguments(url: sa.URL, given: dict[str, Any], *, name: str) -> dict[str, Any]:
    """Keepalives and a name for pg_stat_activity, under what the URL and the application's engine say."""
    return {**KEEPALIVE, "application_name": name[:63], **given, **dict(url.query)}


def use_settings(engine: sa.Engine, **others: str) -> None:
    """Have every new connection of an engine set what the worker's own connections need, in one round trip."""
    settings = {**SESSION_SETTINGS, **others}
    asked = "SELECT " + ", ".join(["set_config(%s, %s, false)"] * len(settings))
    values = [part for pair in settings.items() for part in pair]

    def apply(dbapi_connection: Any, _record: Any) -> None:
        cursor = dbapi_connection.cursor()
        cursor.execute(asked, values)
        cursor.close()
        dbapi_connection.commit()

    event.listen(engine, "connect", apply)


def has_ended(driver_connection: Any) -> bool:
    """Whether the server has ended an idle connection: then its last words wait to be read. Asks the kernel alone.

    One restart or pg_terminate_backend is one outage; without this look each connection would meet it by itself, when
    it happens to be used next, and a claim or a beat sent over it would be lost.
    """
    if driver_connection.closed:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(driver_connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(timeout=0))


def _refuse_ended(_connection: Any, record: Any, _proxy: Any) -> None:
    """Have the pool throw away what it has, and connect anew."""
    if has_ended(record.driver_connection):
        raise sa_exc.InvalidatePoolError


async def _run(
    connection: AsyncConnection, function: Callable[Concatenate[sa.Connection, P], R], *args: P.args, **kwargs: P.kwargs
) -> R:
    try:
        return await connection.run_sync(lambda sync: function(sync, *args, **kwargs))
    except Exception as error:
        if spoils_connection(error):
            await connection.invalidate()
        raise


def _answer_within(limit: timedelta) -> anyio.CancelScope:
    return anyio.move_on_after(limit.total_seconds())
