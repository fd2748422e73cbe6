"""Predicates in the caller's words, on the table that a statement reads: jobs, finished_jobs, or both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.sql import visitors

from jobq.errors import OptionError
from jobq.tables import TIMESTAMP, all_jobs, finished_jobs, jobs

Predicate: TypeAlias = sa.ColumnElement[bool]

# What open jobs have in place of the columns that only finished_jobs has.
_OPEN: dict[str, sa.ColumnElement[Any]] = {
    "state": sa.cast(sa.case((jobs.c.worker_id.is_(None), "pending"), else_="running"), sa.Text),
    "outcome": sa.cast(sa.null(), sa.Text),
    "finished_at": sa.cast(sa.null(), TIMESTAMP),
    "expires_at": sa.cast(sa.null(), TIMESTAMP),
}


def column(table: sa.Table, name: str) -> sa.ColumnElement[Any]:
    """The column of that name, or what stands for it in the table of open jobs."""
    return _OPEN[name] if table is jobs and name in _OPEN else table.c[name]


def table_for(predicates: Sequence[Predicate]) -> sa.Table:
    """The one table that the predicates speak of, so that only its indexes are read; else the view of both."""
    parts: list[Any] = [part for predicate in predicates for part in visitors.iterate(predicate)]
    named = {part.table for part in parts if _is_ours(part)}
    return named.pop() if len(named) == 1 else all_jobs


def onto(table: sa.Table, predicates: Sequence[Predicate]) -> list[Predicate]:
    """The same predicates on columns of `table`, whichever of the three tables they were written with."""

    def moved(element: Any, **_: Any) -> Any:
        return _moved(table, element) if _is_ours(element) and element.table is not table else None

    return [visitors.replacement_traverse(predicate, {}, moved) for predicate in predicates]


def _moved(table: sa.Table, part: sa.Column[Any]) -> sa.ColumnElement[Any]:
    if {part.table, table} == {jobs, finished_jobs}:
        known = "open jobs, jobq.tables.jobs" if table is jobs else "ended jobs, jobq.tables.finished_jobs"
        raise OptionError(f"{part} cannot choose here: this reads {known} (jobq.tables.all_jobs fits both)")
    return column(table, part.name)


def _is_ours(part: Any) -> bool:
    return isinstance(part, sa.Column) and part.table in (all_jobs, jobs, finished_jobs)
