"""The sessions and connections that callers give us: what can be used, and the connection behind it.

Nothing here begins, commits or rolls back; `sqlalchemy.ext.asyncio` is asked about only where it is imported already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import UnboundExecutionError
from sqlalchemy.orm import Session, scoped_session

from jobq.errors import AutocommitError, BindError
from jobq.tables import jobs

if TYPE_CHECKING:  # `import jobq` must work without greenlet
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session

Bind: TypeAlias = "Session | scoped_session[Any] | sa.Connection"
AsyncBind: TypeAlias = "AsyncSession | async_scoped_session[Any] | AsyncConnection"

R = TypeVar("R")

SYNC = "a Session, scoped_session or Connection"
ASYNC = "an AsyncSession, async_scoped_session or AsyncConnection"


def needs_bind(bind: object, called: str = "this function") -> None:
    """Refuse what is not a sync session or connection, without connecting. Raises: BindError."""
    if not isinstance(bind, sa.Connection | Session | scoped_session):
        raise BindError(f"{called} takes {SYNC}, got {_otherwise(bind, called)}")


def connection_of(bind: Bind, called: str = "this function") -> sa.Connection:
    """The connection that is, or becomes, the bind's part in its transaction; errors name the function as `called`.

    Raises: BindError, for what has no transaction or needs the async twin; AutocommitError.
    """
    needs_bind(bind, called)
    connection = bind if isinstance(bind, sa.Connection) else _connection_of_session(bind)
    if is_autocommit(connection):
        raise AutocommitError(
            f"{called}: the connection is in AUTOCOMMIT, so there is no transaction to join and a rollback would keep"
            " the job; use a session or connection of another isolation level"
        )
    return connection


def over(
    bind: AsyncBind, function: Callable[..., R], /, *args: Any, called: str = "this function"
) -> Coroutine[Any, Any, R]:
    """Run `function(sync_bind, *args)` on the sync side of an async bind; what cannot be used is refused at the call.

    The function gets a Session or a Connection, as from SQLAlchemy's `run_sync`. Raises: BindError.
    """
    if not isinstance(bind, _async_classes()):
        raise BindError(f"{called}_async takes {ASYNC}, got {_otherwise(bind, called)}")
    given: Any = bind
    real = given if hasattr(given, "run_sync") else given()  # async_scoped_session has none
    return real.run_sync(function, *args)  # type: ignore[no-any-return]


def is_autocommit(connection: sa.Connection) -> bool:
    """Whether each statement commits by itself, without asking the server: every driver keeps it in `autocommit`."""
    level = connection.get_execution_options().get("isolation_level")
    return level == "AUTOCOMMIT" or getattr(connection.connection.dbapi_connection, "autocommit", False) is True


def _connection_of_session(session: Session | scoped_session[Any]) -> sa.Connection:
    try:
        return session.connection(bind_arguments={"clause": jobs})  # of several engines the one for our tables
    except UnboundExecutionError as error:
        raise BindError(
            "the session has no engine for jobq's tables: give it one with Session(binds={jobq.tables.jobs: engine})"
        ) from error


def _async_classes() -> tuple[type, ...]:
    """None of them, while nobody has imported them: then nobody can have given us one."""
    module = sys.modules.get("sqlalchemy.ext.asyncio")
    return (module.AsyncSession, module.async_scoped_session, module.AsyncConnection) if module else ()


def _otherwise(bind: object, called: str) -> str:
    """What was given in place of a session, and what to do about it."""
    got = type(bind).__name__
    if isinstance(bind, _async_classes()):
        return f"{got}: use {called}_async"
    if isinstance(bind, sa.Connection | Session | scoped_session):
        return f"{got}: use {called}"
    if isinstance(bind, sa.Engine):
        return f"an {got}, that has no transaction to join: with engine.begin() as connection"
    if got == "AsyncEngine":
        return f"an {got}, that has no transaction to join: async with engine.begin() as connection"
    if got in ("sessionmaker", "async_sessionmaker"):
        return f"a {got}: call it to get a session"
    return f"{got} (the session comes first)"
