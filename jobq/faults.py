"""What kind of trouble a database error is: the one place that decides."""

from __future__ import annotations

import sqlalchemy.exc as sa_exc

# The server ends or refuses the connection: 08 connection exception, 57P01..57P05 shutdown, crash, starting up,
# database dropped, idle session timeout; 25P03, 25P04 idle-in-transaction and transaction timeout (PostgreSQL, App. A).
_ENDED = ("08", "57P0", "25P03", "25P04")
# The server refuses, and another time may not: 40 serialization and deadlock, 53 out of resources, 55P03 lock not
# available, 57014 statement timeout, 25006 read-only, 0A000 a cached plan's result type changed.
_REFUSED = (
    "authentication",
    "does not exist",
    "pg_hba.conf",
    "not permitted to log in",
    "permission denied",
    "unsupported startup parameter",
)
_HINTS = {
    "unsupported startup parameter: options": ": a pooler refuses `options`: take them out of the URL and the engine's"
    " connect_args (ALTER ROLE ... SET does the same), or connect to the server itself",
    "prepared statement": ": behind a pooler in transaction mode nothing may be prepared (psycopg: connect_args="
    '{"prepare_threshold": None})',
}
_FOR_NOW = ("40", "53", "55P03", "57014", "25006", "0A000")


def sqlstate(error: BaseException) -> str | None:
    """The SQLSTATE of an error from the server, through SQLAlchemy's wrapping; None when it has none."""
    origin = getattr(error, "orig", None) or error
    state = getattr(origin, "sqlstate", None)
    return state if isinstance(state, str) else None


def is_connection_failure(error: BaseException) -> bool:
    """The connection failed, so what was asked may or may not have happened.

    Never a cancelled wait, never a refusal by the server. A server that cannot be reached gives OperationalError
    without a SQLSTATE (also "too many clients already": psycopg has no result to read one from).
    """
    state = sqlstate(error)
    if state is not None:
        return state.startswith(_ENDED)
    if isinstance(error, sa_exc.DBAPIError):
        return error.connection_invalidated or isinstance(error, (sa_exc.OperationalError, sa_exc.InterfaceError))
    return isinstance(error, (OSError, sa_exc.TimeoutError)) or _is_bare_driver_failure(error)


def can_wait_out(error: BaseException) -> bool:
    """Trouble that passes by itself: the connection, or a refusal that another time may not meet."""
    state = sqlstate(error)
    return is_connection_failure(error) or (state is not None and state.startswith(_FOR_NOW))


def spoils_connection(error: BaseException) -> bool:
    """The connection works, and would give the same answer for as long as it lives: another one may not.

    25006: a session keeps the default_transaction_read_only that it began with. 0A000: a cached plan's result type.
    """
    return sqlstate(error) in {"25006", "0A000"}


def is_refusal(error: BaseException) -> bool:
    """The server answered, and says that this role may not: a wrong password, no such database or role, no rights.

    A refused login has no SQLSTATE in psycopg, only the server's FATAL; other FATALs pass (starting up, too many).
    """
    state = sqlstate(error)
    if state is not None:
        return state.startswith(("28", "3D", "42501"))
    text = said_briefly(error)
    return "FATAL" in text and any(word in text for word in _REFUSED)


def said_briefly(error: BaseException) -> str:
    """The error in one line, without the statement and its parameters, which may hold arguments of jobs."""
    text = " ".join(str(getattr(error, "orig", None) or error).split())
    return (text or type(error).__name__) + hint_for(text)


def hint_for(text: str) -> str:
    """What to do about it, where the words of the database leave that open; else nothing."""
    return next((hint for words, hint in _HINTS.items() if words in text), "")


def _is_bare_driver_failure(error: BaseException) -> bool:
    """psycopg's own errors, where a connection is used without SQLAlchemy (the listener)."""
    kind = type(error)
    return kind.__module__.startswith("psycopg") and any(
        base.__name__ in {"OperationalError", "InterfaceError"} for base in kind.__mro__
    )
