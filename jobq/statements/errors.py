"""The history of a job's failed attempts."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

MOST_ERRORS: sa.ColumnElement[int] = sa.literal_column("25")


def with_error(errors: Any, error: Any) -> sa.ColumnElement[Any]:
    """The history with one more failed attempt, stamped by the database; the oldest is dropped past 25."""
    stamped = error.op("||")(sa.func.jsonb_build_object(sa.literal_column("'at'"), sa.func.now()))
    full = sa.func.jsonb_array_length(errors) >= MOST_ERRORS
    oldest_dropped = errors.op("-")(sa.literal_column("0", sa.Integer))
    return sa.type_coerce(sa.case((full, oldest_dropped), else_=errors).op("||")(stamped), JSONB)
