"""Repairs of very many jobs: in chunks, each committed by itself, so that no lock is held for long."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from jobq.refusals import Repaired
from jobq.statements import admin as statements
from jobq.statements.choose import Predicate

CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class Extent:
    """How many jobs there are to change, and the highest id: those that come later are left alone."""

    matched: int
    highest: int


def extent(connection: sa.Connection, table: sa.Table, predicates: Sequence[Predicate]) -> Extent:
    """Count first."""
    row = connection.execute(statements.extent(table, predicates)).one()
    return Extent(row.matched, row.highest)


def in_chunks(
    connection: sa.Connection,
    table: sa.Table,
    predicates: Sequence[Predicate],
    change: Callable[[sa.Connection, Sequence[int]], Repaired],
    *,
    upto: int,
    size: int = CHUNK,
) -> Iterator[Repaired]:
    """Change what the predicates choose in `table`, by ascending id up to `upto`; commits each chunk."""
    chosen = statements.next_ids(table, predicates, size)
    after = 0
    while ids := list(connection.scalars(chosen, {"after": after, "upto": upto})):
        repaired = change(connection, ids)
        connection.commit()
        yield repaired
        after = ids[-1]
