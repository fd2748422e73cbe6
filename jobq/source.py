"""Where the worker connects to: from a URL as it is, from an engine as the engine itself would connect.

An engine is asked anew for each connection: what its `do_connect` listeners put in (a token in place of a password) is
good for minutes only, and a `creator` may do anything. Its pool and its connections in use are left alone.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import anyio.to_thread
import psycopg
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.util import greenlet_spawn

from jobq.errors import WorkerError
from jobq.tables import SCHEMA
from jobq.urls import normalize, patient

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

LIBPQ_DRIVERS = frozenset({"psycopg", "psycopg2"})  # their connect arguments mean the same to psycopg
OF_ANY_DRIVER = frozenset({"user", "password"})

Connection: TypeAlias = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]
Ours = TypeVar("Ours", psycopg.Connection[Any], psycopg.AsyncConnection[Any])


@dataclass(frozen=True, slots=True)
class Source:
    """A database as the worker's own engines reach it, always through psycopg.

    pooler: a transaction pooler stands in between, so that nothing of a session may be relied on or left behind.
    is_own: its connections are jobq's alone, and speak UTF-8 whatever the database and the engine do. Else the driver
    could not send an exception's words in Greek to a database in LATIN1, and would read names in SQL_ASCII as bytes.
    made: is told of each connection as soon as it is there, before anything is asked over it.
    """

    url: sa.URL
    engine: sa.Engine | None = None
    options: dict[str, Any] = field(default_factory=dict)
    pooler: bool = False
    is_own: bool = False
    made: Callable[[Connection], object] = lambda _: None

    @property
    def channel(self) -> str:
        """The channel of notifications: the name of the schema."""
        translated: str | None = (self.options.get("schema_translate_map") or {}).get(SCHEMA)
        return translated or SCHEMA

    def arguments(self, name: str) -> dict[str, Any]:
        """Keepalives and a name for pg_stat_activity, under what the URL and the application's engine say."""
        unprepared = {"prepare_threshold": None} if self.pooler else {}
        return {**unprepared, **patient(self.url, name), **self._encoding}

    @property
    def _encoding(self) -> dict[str, str]:
        return {"client_encoding": "utf8"} if self.is_own else {}

    def connect(self, conninfo: str = "", **parameters: Any) -> psycopg.Connection[Any]:
        """A connection with these parameters, unless the application's engine says something else."""
        connection = self._open(conninfo, parameters)
        self.made(connection)
        return connection

    async def connect_async(self, conninfo: str = "", **parameters: Any) -> psycopg.AsyncConnection[Any]:
        """The same for the event loop."""
        connection = await self._open_async(conninfo, parameters)
        self.made(connection)
        return connection

    def _open(self, conninfo: str, parameters: dict[str, Any]) -> psycopg.Connection[Any]:
        given = {} if self.engine is None else _ask(self.engine)
        if isinstance(given, dict):
            return psycopg.Connection.connect(conninfo, **{**parameters, **given, **self._encoding})
        return _taken_over(given, psycopg.Connection(given.pgconn))

    async def _open_async(self, conninfo: str, parameters: dict[str, Any]) -> psycopg.AsyncConnection[Any]:
        given = {} if self.engine is None else await _ask_async(self.engine)
        if isinstance(given, dict):
            return await psycopg.AsyncConnection.connect(conninfo, **{**parameters, **given, **self._encoding})
        return _taken_over(given, psycopg.AsyncConnection(given.pgconn))

    async def parameters(self) -> dict[str, Any]:
        """What a connection needs that is not in the URL, for a process that has the URL alone. Raises: WorkerError."""
        given = {} if self.engine is None else await _ask_async(self.engine)
        if isinstance(given, dict):
            return given
        closed = given.close()
        if inspect.isawaitable(closed):
            await closed
        raise WorkerError("the engine's creator makes connections itself, which cannot cross to a child process")

    async def connect_alone(self, name: str) -> psycopg.AsyncConnection[Any]:
        """A connection in autocommit that belongs to no engine."""
        own = replace(self, is_own=True)
        conninfo, parameters = self.url.get_dialect()().create_connect_args(self.url)
        connection = await own.connect_async(*conninfo, **{**parameters, **own.arguments(name)})
        await connection.set_autocommit(True)
        return connection


def source_of(engine: sa.Engine | AsyncEngine | sa.URL | str, *, pooler: bool = False) -> Source:
    """From an engine its way to connect and its schema_translate_map; never its pool or isolation level."""
    if isinstance(engine, (str, sa.URL)):
        return Source(normalize(engine), pooler=pooler)
    plain = engine if isinstance(engine, sa.Engine) else engine.sync_engine
    options = plain.get_execution_options()
    kept = {name: options[name] for name in ("schema_translate_map",) if name in options}
    if not event.contains(plain, "do_connect", _tell):  # behind the application's own listeners
        event.listen(plain, "do_connect", _tell)
    return Source(normalize(plain.url), plain, kept, pooler)


class _Told(Exception):
    """Ends a connect of ours before it is made."""


_asked: ContextVar[tuple[sa.Dialect, dict[str, Any]] | None] = ContextVar("jobq_asked", default=None)


def _tell(dialect: sa.Dialect, _record: Any, _arguments: Any, parameters: dict[str, Any]) -> None:
    """Where it is we who ask, note what would be connected with, and go no further."""
    asked = _asked.get()
    if asked is not None and asked[0] is dialect:
        asked[1].update(parameters)
        raise _Told


def _ask(engine: sa.Engine) -> dict[str, Any] | Connection:
    if engine.dialect.is_async:
        return asyncio.run(greenlet_spawn(_ask_here, engine))
    return _ask_here(engine)


async def _ask_async(engine: sa.Engine) -> dict[str, Any] | Connection:
    """In a thread what is not written for an event loop: a creator, or a listener that fetches a token."""
    if engine.dialect.is_async:
        return await greenlet_spawn(_ask_here, engine)
    return await anyio.to_thread.run_sync(_ask_here, engine, abandon_on_cancel=True)


def _ask_here(engine: sa.Engine) -> dict[str, Any] | Connection:
    """What differs from the URL in the parameters that this engine would connect with; or a connection that somebody
    else has made, its `creator` or a listener of `do_connect`."""
    seen: dict[str, Any] = {}
    token = _asked.set((engine.dialect, seen))
    try:
        made = engine.pool.recreate().connect()
    except _Told:
        _, from_url = engine.dialect.create_connect_args(engine.url)
        return _for_psycopg(engine.driver, {n: v for n, v in seen.items() if n not in from_url or from_url[n] != v})
    finally:
        _asked.reset(token)
    connection = made.driver_connection
    made.detach()  # from the pool that was made for it alone
    if not isinstance(connection, psycopg.Connection | psycopg.AsyncConnection):
        made.close()
        raise WorkerError(
            f"the engine's creator makes connections of {type(connection).__module__.partition('.')[0]}, the worker"
            " needs those of psycopg: give it a URL, or an engine whose creator returns psycopg.connect(...)"
        )
    return connection


def _for_psycopg(driver: str, parameters: dict[str, Any]) -> dict[str, Any]:
    if driver in LIBPQ_DRIVERS:
        return {name: value for name, value in parameters.items() if name != "context"}
    return {name: value for name, value in parameters.items() if name in OF_ANY_DRIVER and isinstance(value, str)}


def _taken_over(given: Connection, ours: Ours) -> Ours:
    """Both stand on one libpq connection. The given one has to stay: it would complain of not having been closed."""
    vars(ours)["given"] = given
    return ours
