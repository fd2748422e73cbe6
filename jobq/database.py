"""The worker's own connections: few, in autocommit, bounded in time, and never those of handlers."""

from __future__ import annotations

import select
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from time import monotonic
from typing import Any, Concatenate, ParamSpec, TypeVar

import anyio
import psycopg
import sqlalchemy as sa
import sqlalchemy.exc as sa_exc
from psycopg.pq import Format
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from jobq.asking import ask
from jobq.errors import WorkerError
from jobq.faults import spoils_connection
from jobq.idle import IdleConnections
from jobq.pooler import use_local_settings
from jobq.session_settings import session_settings
from jobq.source import Source
from jobq.store.rows import OneStatement

P = ParamSpec("P")
R = TypeVar("R")

STATEMENT_LIMIT = timedelta(seconds=10)
ANSWER_LIMIT = timedelta(seconds=15)  # beyond it the server is taken for lost, frozen or unreachable
# A first connection takes SQLAlchemy and us 12 round trips: with an answer two seconds away that is 24 s.
CONNECT_LIMIT = timedelta(seconds=25)
# A plan cached while `jobs` was tiny took 130 ms a claim after a burst, 0.5 ms with the two switches of scans. Before
# version 18 PostgreSQL counts a scan that is switched off as 10^10, and where it can compile, it compiles such a
# statement each time: on Debian's 15 the claim and the end of one FIFO job took 0.4 s each.
SESSION_SETTINGS = {
    "statement_timeout": f"{STATEMENT_LIMIT.total_seconds():.0f}s",
    "idle_in_transaction_session_timeout": "5s",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}


class Database:
    """Runs store functions on the worker's own pool.

    Single statements run in autocommit: a client frozen between a statement and its COMMIT would hold locks.
    Raises ConnectionError when the server does not answer in time; the connection is then closed.
    """

    def __init__(
        self,
        source: Source,
        *,
        name: str,
        size: int,
        statement_limit: timedelta = STATEMENT_LIMIT,
        answer_limit: timedelta = ANSWER_LIMIT,
    ) -> None:
        self.url = source.url
        self.size = size
        self._answer_limit = answer_limit
        self._doubtful_until = 0.0  # connections that have been idle since before are not trusted
        self._in_transaction: dict[sa.Connection | None, anyio.CancelScope] = {}
        self._engine = _own_engine(source, name=name, size=size, statement_limit=statement_limit)
        event.listen(self._engine.sync_engine, "after_cursor_execute", self._answered)
        self._transactions = self._engine.execution_options(isolation_level="READ COMMITTED")
        self._idle = IdleConnections(self._engine, size, has_ended=has_ended)
        event.listen(self._engine.sync_engine, "checkout", self._refuse_ended)

    async def run(self, function: Callable[Concatenate[sa.Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """One store function in autocommit."""
        connection, is_good = self._idle.at_hand(), False
        with anyio.move_on_after((self._answer_limit if connection else CONNECT_LIMIT).total_seconds()) as scope:
            if connection is None:
                connection = await self._idle.take()
                self._await_answer(scope)
            try:
                answer = await _run(connection, function, *args, **kwargs)
                is_good = True
                return answer
            finally:
                await self._idle.give_back(connection, is_good=is_good)
        raise self._no_answer()

    async def transaction(
        self, function: Callable[Concatenate[sa.Connection, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """One store function in one transaction; the time for an answer is that of each of its statements."""
        with anyio.move_on_after(CONNECT_LIMIT.total_seconds()) as scope:
            async with self._idle.room_in_the_pool(), self._transactions.begin() as connection:
                self._await_answer(scope)
                self._in_transaction[connection.sync_connection] = scope
                try:
                    return await _run(connection, function, *args, **kwargs)
                finally:
                    del self._in_transaction[connection.sync_connection]
        raise self._no_answer()

    async def close(self) -> None:
        """Close every connection, within 2 seconds."""
        with anyio.move_on_after(2, shield=True):
            await self._idle.let_go()
            await self._engine.dispose()

    def _await_answer(self, scope: anyio.CancelScope) -> None:
        """From now on: it is connected, or the answer before has come."""
        scope.deadline = anyio.current_time() + self._answer_limit.total_seconds()

    def _answered(self, connection: sa.Connection, *_: Any) -> None:
        if scope := self._in_transaction.get(connection):
            self._await_answer(scope)

    def _no_answer(self) -> ConnectionError:
        """What swallowed this answer (a cable, a middle box that forgot us) has swallowed the idle connections too."""
        self._doubtful_until = monotonic()
        self._idle.doubt()
        return ConnectionError(f"the server did not answer within {self._answer_limit.total_seconds():.0f} s")

    def _refuse_ended(self, _connection: Any, record: Any, _proxy: Any) -> None:
        """Have the pool throw away what it has, and connect anew.

        A new connection is let through: two refusals in a row SQLAlchemy takes for wrong use, which ends the worker.
        """
        idle_since: float | None = record.info.get("idle_since")
        if idle_since is not None and (idle_since < self._doubtful_until or has_ended(record.driver_connection)):
            raise sa_exc.InvalidatePoolError


def _own_engine(source: Source, *, name: str, size: int, statement_limit: timedelta) -> AsyncEngine:
    """An engine for the worker's own statements: READ COMMITTED whatever the application's engine has.

    In autocommit from the connecting on: to switch it on and off around each statement cost as much as the statement.
    """
    engine = async_engine(
        replace(source, is_own=True),
        name=name,
        isolation_level="AUTOCOMMIT",
        pool_size=size,
        max_overflow=0,
        pool_timeout=ANSWER_LIMIT.total_seconds(),
        use_native_hstore=False,  # else each first connection asks for a type that jobq has no use for: 3 round trips
    )
    milliseconds = f"{statement_limit.total_seconds() * 1000:.0f}ms"
    use_settings(engine.sync_engine, pooler=source.pooler, statement_timeout=milliseconds)
    if not source.pooler:  # what cannot prepare a statement has its answers as text
        event.listen(engine.sync_engine, "connect", _answer_in_binary)
    event.listen(engine.sync_engine, "checkin", _note_idle)
    return engine


def _answer_in_binary(_connection: Any, record: Any) -> None:
    """A job comes with three moments, and as text each takes both sides longer."""
    record.driver_connection.cursor_factory = _binary_cursor


def _binary_cursor(*args: Any, **options: Any) -> psycopg.AsyncCursor[Any]:
    cursor: psycopg.AsyncCursor[Any] = psycopg.AsyncCursor(*args, **options)
    cursor.format = Format.BINARY
    return cursor


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
    others = {
        "default_transaction_isolation": "read committed",  # of statements in autocommit
        "client_encoding": "UTF8",  # of a connection that the engine's creator has made
    }
    settings = {**settings, **others}
    more, parameters = session_settings()
    asked = f"SELECT {', '.join(['set_config(%s, %s, false)'] * len(settings))}, {more} WHERE pg_backend_pid() = %s"
    was_autocommit = dbapi_connection.autocommit
    dbapi_connection.autocommit = True  # one round trip, not three: the network may be slow
    cursor = dbapi_connection.cursor()
    cursor.execute(asked, [*[part for pair in settings.items() for part in pair], *parameters, pid])
    is_set = cursor.fetchone() is not None
    cursor.close()
    dbapi_connection.autocommit = was_autocommit
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
    record.info["idle_since"] = monotonic()


async def _run(
    connection: AsyncConnection, function: Callable[Concatenate[sa.Connection, P], R], *args: P.args, **kwargs: P.kwargs
) -> R:
    try:
        if isinstance(function, OneStatement):
            answer: R = await ask(connection, function, *args, **kwargs)
            return answer
        return await connection.run_sync(lambda sync: function(sync, *args, **kwargs))
    except Exception as error:
        if spoils_connection(error):
            await connection.invalidate()
        raise
