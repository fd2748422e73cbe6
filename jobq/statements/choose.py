"""Predicates in the caller's words, on the table that a statement reads: jobs, finished_jobs, or both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.sql import visitors

from jobq.errors import OptionError
from jobq.tables import TIMESTAMP, all_jobs, finished_jobs, jobs

Predicate: TypeAlias = sa.ColumnElement[bool]
OURS = (all_jobs, jobs, finished_jobs)

# What open jobs have in place of the columns that only finished_jobs has.
_OPEN: dict[str, sa.ColumnElement[Any]] = {
    "state": sa.cast(sa.case((jobs.c.worker_id.is_(None), "pending"), else_="running"), sa.Text),
    "outcome": sa.cast(sa.null(), sa.Text),
    "finished_at": sa.cast(sa.null(), TIMESTAMP),
    "expires_at": sa.cast(sa.null(), TIMESTAMP),
    "result": sa.cast(sa.null(), JSONB),
}


def column(table: sa.Table, name: str) -> sa.ColumnElement[Any]:
    """The column of that name, or what stands for it in the table of open jobs."""
    return _OPEN[name] if table is jobs and name in _OPEN else table.c[name]


def table_for(predicates: Sequence[Predicate]) -> sa.Table:
    """The one table that the predicates speak of, so that only its indexes are read; else the view of both."""
    parts = [part for predicate in predicates for part in _parts(predicate)]
    named = {part.table for part in parts if _is_ours(part)}
    return named.pop() if len(named) == 1 else all_jobs


def onto(table: sa.Table, predicates: Sequence[Predicate]) -> list[Predicate]:
    """The same predicates on columns of `table`, whichever of the three tables they were written with.

    Subqueries of their own are left as they are; in those that are about each job (a join with the caller's tables, an
    EXISTS) the job's columns are changed too.
    """

    def moved(element: Any, **_: Any) -> Any:
        return _moved(table, element) if _is_ours(element) and element.table is not table else None

    def all_moved(predicate: Predicate) -> Predicate:
        apart = [part for part in visitors.iterate(predicate) if _stands_alone(part)]
        return visitors.replacement_traverse(predicate, {"stop_on": apart}, moved)

    return [all_moved(predicate) for predicate in predicates]


def _moved(table: sa.Table, part: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """Ended jobs may be chosen in the words of open ones: they have the same columns. The other way round it would
    change jobs that the words do not speak of."""
    if part.table is finished_jobs and table is jobs:
        raise OptionError(
            f"{part} cannot choose here: this reads open jobs, jobq.tables.jobs (jobq.tables.all_jobs fits both)"
        )
    return column(table, part.name)


def _parts(element: Any) -> Iterator[Any]:
    """The element and all that it is made of, but for subqueries of their own."""
    yield element
    for child in element.get_children():
        if not _stands_alone(child):
            yield from _parts(child)


def _stands_alone(part: Any) -> bool:
    """Whether a SELECT reads our tables for itself: it names them as its own FROM, or reads nothing else."""
    if not isinstance(part, sa.Select):
        return False
    froms: Any = part.get_final_froms()
    joined = [each for found in froms if isinstance(found, sa.Join) for each in visitors.iterate(found)]
    return all(_is_our_table(found) for found in froms) or any(map(_is_our_table, joined))


def _is_our_table(part: Any) -> bool:
    return isinstance(part, sa.Table) and part in OURS


def _is_ours(part: Any) -> bool:
    return isinstance(part, sa.Column) and part.table in OURS
