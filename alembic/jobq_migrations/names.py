"""The names of jobq's tables in a database."""

from __future__ import annotations

from functools import cache

from jobq.tables import metadata
from jobq_migrations.places import VERSION_TABLE


@cache
def tables() -> frozenset[str]:
    return frozenset({VERSION_TABLE, *(table.name for table in metadata.tables.values())})
