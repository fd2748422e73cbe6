"""Rows as the driver gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from jobq.faults import is_connection_failure

Schemas = tuple[tuple[str | None, str | None], ...] | None


def raw_rows(
    connection: sa.Connection, statement: sa.Executable, binds: Mapping[str, Any]
) -> Sequence[tuple[Any, ...]]:
    """Plain tuples, for statements of very many rows and those that somebody waits for; errors are the driver's own.

    SQLAlchemy compiles the statement, once. What it does around each execution takes longer than all that the driver
    does: without it an idle worker begins a job 0.3 ms earlier. No values but those that the driver takes as they are.
    """
    if not connection.in_transaction():
        connection.begin()  # as `connection.execute` would
    schemas = connection.get_execution_options().get("schema_translate_map")
    text, constants = _compiled(statement, connection.dialect, schemas and tuple(schemas.items()))
    cursor = connection.connection.cursor()
    try:
        cursor.execute(text, {**constants, **binds})
        rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
    except BaseException as error:
        if is_connection_failure(error) or not isinstance(error, Exception):  # cancelled: its state is not known
            connection.invalidate(error)
        raise
    cursor.close()
    return rows


def integers(values: Iterable[int]) -> str:
    """An array as the server reads it: the driver takes ten times as long for a thousand of them."""
    return f"{{{str(list(values))[1:-1]}}}"


def times(values: Iterable[datetime]) -> str:
    """The same for moments."""
    return f"{{{','.join([each.isoformat() for each in values])}}}"


@lru_cache(maxsize=64)
def _compiled(statement: Any, dialect: sa.Dialect, schemas: Schemas) -> tuple[str, dict[str, Any]]:
    """Its text, and the values of the binds that are not ours."""
    translated = {"schema_translate_map": dict(schemas), "render_schema_translate": True} if schemas else {}
    compiled = statement.compile(dialect=dialect, **translated)
    return str(compiled), {name: value for name, value in compiled.params.items() if value is not None}
