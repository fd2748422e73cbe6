"""Rows as the driver gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa


def raw_rows(
    connection: sa.Connection, statement: sa.Executable, binds: Mapping[str, Any]
) -> Sequence[tuple[Any, ...]]:
    """Plain tuples, for statements of very many rows: SQLAlchemy's own, with names, would cost more than the rest."""
    result = connection.execute(statement, binds)
    cursor = result.cursor
    assert cursor is not None
    rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
    result.close()
    return rows
