"""Predicates from what is typed, on the table that a command reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

import sqlalchemy as sa
import typer
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from jobq.codec.form import Misfit
from jobq.codec.walk import inspect_text, inspect_tree
from jobq.model import ENDED, OPEN, State
from jobq.statements.choose import Predicate, column
from jobq.tables import all_jobs, finished_jobs, jobs


def source(states: Collection[State]) -> sa.Table:
    """The one table that holds jobs in these states, or the view of both."""
    if OPEN.issuperset(states):
        return jobs
    return finished_jobs if ENDED.issuperset(states) else all_jobs


def in_state(table: sa.Table, states: Collection[State]) -> list[Predicate]:
    """None, when all states are meant."""
    if set(states) == set(State):
        return []
    return [column(table, "state").in_([str(state) for state in sorted(states)])]


def ended_or_enqueued(table: sa.Table) -> sa.ColumnElement[Any]:
    """What a job's age counts from."""
    if table is jobs:
        return table.c.created_at
    return table.c.finished_at if table is finished_jobs else sa.func.coalesce(table.c.finished_at, table.c.created_at)


def has_arg(table: sa.Table, asked: str) -> Predicate:
    """By path and not by containment, so that `items.0.sku` is one too. A name may have dots in it itself."""
    path, value = parsed_arg(asked)
    wanted = sa.cast(sa.cast(value, sa.Text), JSONB)

    def found(steps: list[str]) -> Predicate:
        return table.c.args.op("#>", return_type=JSONB)(sa.cast(steps, ARRAY(sa.Text))) == wanted

    return found(path) if len(path) == 1 else sa.or_(found(path), found([".".join(path)]))


def has_error(table: sa.Table, text: str) -> Predicate:
    """In the last error or the outcome, whatever the case; not by LIKE, to which some characters mean something."""
    last = table.c.errors.op("->", return_type=JSONB)(sa.literal_column("-1"))
    parts = [last.op("->>", return_type=sa.Text())(sa.literal_column(name)) for name in ("'error'", "'message'")]
    said = sa.func.concat_ws(": ", *parts, column(table, "outcome"))
    return sa.func.strpos(sa.func.lower(said), sa.func.lower(sa.cast(text, sa.Text))) > 0


def parsed_arg(asked: str) -> tuple[list[str], str]:
    """The path, and the value as JSON: as it stands if it is some, else as a text. Raises: typer.BadParameter."""
    path, equals, value = asked.partition("=")
    if not path or not equals:
        raise typer.BadParameter(f"{asked!r}: write the argument's name and its value, such as tenant.id=7")
    checked_text(path)
    checked_text(value)
    return path.split("."), value if _is_json(value) else json.dumps(value, ensure_ascii=False)


def checked_text(text: str) -> str:
    """A text that the database can hold. Raises: typer.BadParameter."""
    _check(inspect_text, text)
    return text


def _is_json(value: str) -> bool:
    try:
        found = json.loads(value, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return False
    _check(inspect_tree, found)
    return True


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _check(inspect: Callable[[Any], None], value: Any) -> None:
    """What jsonb cannot hold, no job has."""
    try:
        inspect(value)
    except Misfit as misfit:
        raise typer.BadParameter(misfit.problem) from None
