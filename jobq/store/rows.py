"""Rows as the driver gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
import sqlalchemy.exc as sa_exc

from jobq.faults import is_connection_failure

Rows = Sequence[tuple[Any, ...]]
Schemas = tuple[tuple[str | None, str | None], ...] | None


def raw_rows(connection: sa.Connection, statement: sa.Executable, binds: Mapping[str, Any]) -> Rows:
    """Plain tuples, for statements of very many rows and those that somebody waits for.

    SQLAlchemy compiles the statement, once. What it does around each execution takes longer than all that psycopg does,
    and a job that is picked up waits for it. No values but those that a driver takes as they are.
    """
    if connection.dialect.driver != "psycopg":  # of the testing kit
        return connection.execute(statement, binds).fetchall()
    if not connection.in_transaction():
        connection.begin()  # as `connection.execute` would
    schemas = connection.get_execution_options().get("schema_translate_map")
    text, constants = _compiled(statement, connection.dialect, schemas and tuple(schemas.items()))
    return _sent(connection, text, {**constants, **{name: _as_text(value) for name, value in binds.items()}})


def _sent(connection: sa.Connection, text: str, values: Mapping[str, Any]) -> Rows:
    cursor = connection.connection.cursor()
    try:
        cursor.execute(text, values)
        rows: Rows = cursor.fetchall()
    except Exception as error:
        if is_lost := is_connection_failure(error):
            connection.invalidate(error)
        raise _wrapped(connection, text, error, is_lost) from error
    except BaseException as error:  # cancelled: its state is not known
        connection.invalidate(error)
        raise
    cursor.close()
    return rows


def _wrapped(connection: sa.Connection, text: str, error: Exception, is_lost: bool) -> BaseException:
    """The error that `connection.execute` would raise."""
    base = connection.dialect.loaded_dbapi.Error
    return sa_exc.DBAPIError.instance(
        text, None, error, base, hide_parameters=True, connection_invalidated=is_lost, dialect=connection.dialect
    )


def _as_text(value: Any) -> Any:
    """Arrays of numbers and moments as the server reads them: psycopg takes many times as long for a thousand."""
    if not isinstance(value, list) or not value:
        return value
    if isinstance(value[0], int):
        return f"{{{str(value)[1:-1]}}}"
    if isinstance(value[0], datetime):
        return f"{{{','.join([each.isoformat() for each in value])}}}"
    return value


@lru_cache(maxsize=64)
def _compiled(statement: Any, dialect: sa.Dialect, schemas: Schemas) -> tuple[str, dict[str, Any]]:
    """Its text, and the values of the binds that are not ours."""
    translated = {"schema_translate_map": dict(schemas), "render_schema_translate": True} if schemas else {}
    compiled = statement.compile(dialect=dialect, **translated)
    return str(compiled), {name: value for name, value in compiled.params.items() if value is not None}
