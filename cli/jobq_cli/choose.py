"""Which jobs the options --state, --queue and --kind mean, on the table that holds them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from jobq.model import ENDED, OPEN, State
from jobq.statements.choose import column
from jobq.tables import all_jobs, finished_jobs, jobs


def source(states: Collection[State]) -> sa.Table:
    """The one table that holds jobs in these states, or the view of both."""
    if OPEN.issuperset(states):
        return jobs
    return finished_jobs if ENDED.issuperset(states) else all_jobs


def where(
    table: sa.Table, states: Collection[State], queue: str | None, kind: str | None
) -> list[sa.ColumnElement[bool]]:
    """The predicates; what is not restricted gives none."""
    found: list[Any] = []
    if set(states) != set(State):
        found.append(column(table, "state").in_([str(state) for state in sorted(states)]))
    found += [table.c.queue == queue] if queue is not None else []
    found += [table.c.kind == kind] if kind is not None else []
    return found
