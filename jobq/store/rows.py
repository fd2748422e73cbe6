"""Rows as the driver gives them, of statements that very many rows come from, or that somebody waits for.

SQLAlchemy compiles them, once. What it does around each execution takes longer than all that psycopg does, and a job
that is picked up waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, update_wrapper
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar

import sqlalchemy as sa
import sqlalchemy.exc as sa_exc

from jobq.faults import is_connection_failure

P = ParamSpec("P")
R = TypeVar("R")
Rows = Sequence[tuple[Any, ...]]
Schemas = tuple[tuple[str | None, str | None], ...] | None


@dataclass(frozen=True, slots=True)
class Query(Generic[R]):
    """A statement, its binds, and what its rows mean. No values but those that a driver takes as they are."""

    statement: sa.Executable
    binds: Mapping[str, Any]
    read: Callable[[Rows], R]


class OneStatement(Generic[P, R]):
    """A store function, (connection, ...), that is one statement: `query` without the connection says which."""

    def __init__(self, query: Callable[P, Query[R]]) -> None:
        self.query = query
        update_wrapper(self, query)

    def __call__(self, connection: sa.Connection, *args: P.args, **kwargs: P.kwargs) -> R:
        query = self.query(*args, **kwargs)
        return query.read(raw_rows(connection, query.statement, query.binds))


def raw_rows(connection: sa.Connection, statement: sa.Executable, binds: Mapping[str, Any]) -> Rows:
    """Plain tuples."""
    if connection.dialect.driver != "psycopg":  # of the testing kit
        return connection.execute(statement, binds).fetchall()
    if not connection.in_transaction():
        connection.begin()  # as `connection.execute` would
    text, values = sent_as(connection, statement, binds)
    cursor = connection.connection.cursor()
    try:
        cursor.execute(text, values)
        rows: Rows = cursor.fetchall()
    except BaseException as error:
        refuse(connection, text, error)
    cursor.close()
    return rows


def refuse(connection: sa.Connection, text: str, error: BaseException) -> NoReturn:
    """Raise what `connection.execute` would raise of an error of the driver, and leave the connection as it would."""
    if not isinstance(error, Exception):  # cancelled: its state is not known
        connection.invalidate(error)
        raise error
    if is_lost := is_connection_failure(error):
        connection.invalidate(error)
    base = connection.dialect.loaded_dbapi.Error
    raise sa_exc.DBAPIError.instance(
        text, None, error, base, hide_parameters=True, connection_invalidated=is_lost, dialect=connection.dialect
    ) from error


def sent_as(
    connection: sa.Connection, statement: sa.Executable, binds: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any]]:
    """The text and the values that the driver gets."""
    schemas = connection.get_execution_options().get("schema_translate_map")
    text, constants = _compiled(statement, connection.dialect, schemas and tuple(schemas.items()))
    return text, {**constants, **{name: _as_text(value) for name, value in binds.items()}}


def _as_text(value: Any) -> Any:
    """Arrays as the server reads them: psycopg takes many times as long, for a thousand and for one."""
    if not isinstance(value, list) or not value:
        return value
    if isinstance(value[0], int):
        return f"{{{str(value)[1:-1]}}}"
    if isinstance(value[0], datetime):
        return f"{{{','.join([each.isoformat() for each in value])}}}"
    return f"{{{','.join(map(_quoted, value))}}}"


def _quoted(text: str | None) -> str:
    """An element of an array of texts."""
    if text is None:
        return "NULL"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@lru_cache(maxsize=64)
def _compiled(statement: Any, dialect: sa.Dialect, schemas: Schemas) -> tuple[str, dict[str, Any]]:
    """Its text, and the values of the binds that are not ours."""
    translated = {"schema_translate_map": dict(schemas), "render_schema_translate": True} if schemas else {}
    compiled = statement.compile(dialect=dialect, **translated)
    return str(compiled), {name: value for name, value in compiled.params.items() if value is not None}
