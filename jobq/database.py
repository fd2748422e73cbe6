"""The worker's own connections: few, in autocommit, bounded in time, and never those of handlers."""

from __future__ import annotations

import select
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

import anyio
import sqlalchemy as sa
import sqlalchemy.exc as sa_exc
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from jobq.errors import WorkerError
from jobq.faults import spoils_connection
from jobq.pooler import use_local_settings
from jobq.source import Source

P = ParamSpec("P")
R = TypeVar("R")

STATEMENT_LIMIT = timedelta(seconds=10)
ANSWER_LIMIT = timedelta(seconds=15)  # beyond it the server is taken for lost, frozen or unreachable
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

    def __init__(self, source: Source, *, name: str, size: int) -> None:
        self.url = source.url
        self.size = size
        self._engine = _own_engine(source, name=name, size=size)
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


def _own_engine(source: Source, *, name: str, size: int) -> AsyncEngine:
    """An engine for the worker's own statements: READ COMMITTED whatever the application's engine has."""
    engine = async_engine(
        source,
        name=name,
        isolation_level="READ COMMITTED",
        pool_size=size,
        max_overflow=0,
        pool_timeout=ANSWER_LIMIT.total_seconds(),
    )
    use_settings(engine.sync_engine, pooler=source.pooler)
    event.listen(engine.sync_engine, "checkin", _note_idle)
    event.listen(engine.sync_engine, "checkout", _refuse_ended)
    return engine


def async_engine(source: Source, *, name: str, **options: Any) -> AsyncEngine:
    """An engine that connects as the source does. The options are those of `create_async_engine`.

    The source's own options go in here: in SQLAlchemy 2.0 `execution_options` cannot be called on the result.
    """
    arguments = {**source.arguments(name), "async_creator_fn": source.connect_async}
    return create_async_engine(
        source.url, connect_args=arguments, hide_parameters=True, execution_options=source.options, **options
    )


def sync_engine(source: Source, *, name: str, **options: Any) -> sa.Engine:
    """The same for threads."""

    def connect(_dialect: Any, _record: Any, conninfo: tuple[str, ...], parameters: dict[str, Any]) -> Any:
        return source.connect(*conninfo, **parameters)

    engine = sa.create_engine(
        source.url,
        connect_args=source.arguments(name),
        hide_parameters=True,
        execution_options=source.options,
        **options,
    )
    event.listen(engine, "do_connect", connect)
    return engine


def use_settings(engine: sa.Engine, *, pooler: bool = False, **others: str) -> None:
    """Have the statements of an engine run with what the worker's own connections need.

    Set once a connection, in one round trip; behind a pooler with each transaction, and for it alone.
    """
    settings = {**SESSION_SETTINGS, **others}

    def apply(dbapi_connection: Any, record: Any) -> None:
        if pooler:
            use_local_settings(record.driver_connection, settings)
        else:
            _set_for_session(dbapi_connection, record.driver_connection.info.backend_pid, settings)

    event.listen(engine, "connect", apply)


def _set_for_session(dbapi_connection: Any, pid: int, settings: dict[str, str]) -> None:
    """Unless a pooler stands in between: it has process ids of its own, and others would get the settings.

    Raises: WorkerError.
    """
    settings = {**settings, "default_transaction_isolation": "read committed"}  # of statements in autocommit
    asked = "SELECT " + ", ".join(["set_config(%s, %s, false)"] * len(settings)) + " WHERE pg_backend_pid() = %s"
    cursor = dbapi_connection.cursor()
    cursor.execute(asked, [*[part for pair in settings.items() for part in pair], pid])
    is_set = cursor.fetchone() is not None
    cursor.close()
    dbapi_connection.commit()
    if not is_set:
        dbapi_connection.close()
        raise WorkerError(
            "a pooler stands between the worker and the server: start it with --pooler (in Python: pooler=True),"
            " or give it the server's own URL"
        )


def has_ended(driver_connection: Any) -> bool:
    """Whether the server has ended an idle connection: then its last words wait to be read. Asks the kernel alone.

    One restart or pg_terminate_backend is one outage; without this look each connection would meet it by itself, when
    it happens to be used next, and a claim or a beat sent over it would be lost.
    """
    if driver_connection.closed:
        return True
    return _readable(driver_connection.fileno())


def _readable(descriptor: int) -> bool:
    """One system call where there is `poll`; `select` alone knows no descriptor above 1023."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([descriptor], [], [], 0)[0])


def _note_idle(_connection: Any, record: Any) -> None:
    record.info["has_been_idle"] = True


def _refuse_ended(_connection: Any, record: Any, _proxy: Any) -> None:
    """Have the pool throw away what it has, and connect anew.

    A new connection is let through: two refusals in a row SQLAlchemy takes for wrong use, which ends the worker.
    """
    if record.info.get("has_been_idle") and has_ended(record.driver_connection):
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
