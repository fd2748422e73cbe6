"""For how long a row stays that ends without its handler's word: cancelled by hand, or dead by rescue."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from jobq.statements.binds import as_interval, seconds
from jobq.tables import kinds

# A keep in a row's meta is untrusted; about 95 years fit every timestamp.
LONGEST_SECONDS: sa.ColumnElement[float] = sa.literal_column("3000000000")


def kept(row: sa.CTE) -> sa.ColumnElement[Any]:
    """As the job's own row says, else as its kind says, but never less than the bind `least_seconds`."""
    said = row.c.meta[sa.literal_column("'keep'", sa.Text)]
    bounded = sa.func.least(sa.cast(said.astext, sa.Double), LONGEST_SECONDS)
    is_number = sa.func.jsonb_typeof(said) == sa.literal_column("'number'")
    own = sa.case((is_number, as_interval(bounded)))
    of_kind = sa.select(kinds.c.keep).where(kinds.c.kind == row.c.kind).scalar_subquery()
    return sa.func.greatest(sa.func.coalesce(own, of_kind), seconds("least_seconds"))
