"""The columns of a SELECT by their labels: which are arguments, which are options, and what no row of them may hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa
from sqlalchemy.exc import InvalidRequestError

from jobq import checks
from jobq.codec.form import Misfit, step
from jobq.errors import ArgsError, JobqError, OptionError, OptionTypeError
from jobq.handlers import Handler, Kind
from jobq.options import Options
from jobq.statements.columns import Argument, Element, argument, object_of, python_type, refuse_naive
from jobq.statements.enqueue_select import Rows, own_binds
from jobq.tables import TIMESTAMP

FromRow: TypeAlias = Literal["run_at", "priority"]
"""An option that each row of a SELECT may have its own value of."""

Columns: TypeAlias = Mapping[str, Element]

LATEST = sa.literal_column(f"timestamptz '{checks.LATEST.isoformat()}'", TIMESTAMP)


@dataclass(frozen=True, slots=True)
class Unfit:
    """A condition of rows that cannot be jobs; `argument` is None where an option is at fault."""

    condition: Element
    problem: str
    argument: str | None = None

    def error(self, rows: int) -> JobqError:
        said = f"{self.problem}, in {rows:,} {'row' if rows == 1 else 'rows'} of the select; nothing was inserted"
        return OptionError(said) if self.argument is None else ArgsError(f"args{step(self.argument)}", said)


def labelled(kind: Kind[...], select: object, options_from: Iterable[FromRow]) -> tuple[Rows, tuple[Unfit, ...]]:
    """What a row of the SELECT gives, and the meaning of each of its conditions.

    Raises: OptionTypeError, OptionError, ArgsError, for labels and types that do not fit.
    """
    if not isinstance(select, sa.SelectBase):
        known = "sqlalchemy.select(...) with labelled columns (of a Query its .statement)"
        raise OptionTypeError(f"select: expected {known}, got {type(select).__name__}")
    names = _names(options_from, kind.effective())
    columns = _columns(select)
    options = {name: _option(name, columns) for name in names}
    arguments = _arguments(kind, {name: column for name, column in columns.items() if name not in options})
    unfit = tuple(Unfit(*each, name) for name, made in arguments.items() for each in made.unfit)
    unfit += tuple(UNFIT[name](column) for name, column in options.items())
    rows = Rows(
        args=object_of({name: made.value for name, made in arguments.items()}),
        run_at=options.get("run_at"),
        priority=_priority(options["priority"]) if "priority" in options else None,
        unfit=tuple(each.condition for each in unfit),
    )
    return rows, unfit


def _columns(select: sa.SelectBase) -> Columns:
    """By the names that a row of the result would have."""
    if own := own_binds(select):
        raise OptionError(f"select: its bind {min(own)!r} has the name of one of jobq's, give it another")
    try:
        columns = select.subquery().c.items()
    except InvalidRequestError as error:
        raise ArgsError("args", f"the columns of the select: {error}") from error
    labels = [label for label, _ in columns]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise ArgsError("args", f"two columns are labelled {', '.join(twice)}")
    return dict(columns)


def _names(options_from: Iterable[FromRow], options: Options) -> list[str]:
    if isinstance(options_from, str):
        raise OptionTypeError(f"options_from: expected a tuple of names, got the str {options_from!r}")
    names = [checks.one_of("options_from", name, ("run_at", "priority")) for name in options_from]
    if "run_at" in names and (options.run_at is not None or options.delay is not None):
        raise OptionError("options_from: run_at is the row's, so neither run_at= nor delay= can be given")
    if options.unique_key is not None:
        raise OptionError("unique_key: one key for all rows would be one job; unique=True derives a key for each")
    return names


def _option(name: str, columns: Columns) -> Element:
    if (column := columns.get(name)) is None:
        raise OptionError(f"options_from: no column is labelled {name} (labels: {', '.join(columns) or 'none'})")
    expected, said = TYPES[name]
    if python_type(column) is not expected:
        raise OptionTypeError(f"{name}: expected {said}, got a column of type {type(column.type).__name__}")
    if expected is datetime:
        try:
            refuse_naive(column)
        except Misfit as misfit:
            raise OptionError(f"{name}: {misfit.problem}") from None
    return column


TYPES: dict[str, tuple[type[Any], str]] = {
    "run_at": (datetime, "a timestamp with time zone"),
    "priority": (int, "an integer"),
}
UNFIT = {
    "run_at": lambda column: Unfit(column >= LATEST, f"run_at: not before the year {checks.LATEST.year}"),
    "priority": lambda column: Unfit(sa.not_(column.between(0, 3)), "priority: not from 0 to 3"),
}


def _priority(column: Element) -> Element:
    """As smallint; a larger number is told by its condition, and must not fail in the cast before that."""
    return sa.cast(sa.case((column.between(0, 3), column)), sa.SmallInteger)


def _arguments(kind: Kind[...], columns: Columns) -> dict[str, Argument]:
    if not isinstance(kind, Handler):
        return {name: Argument(column) for name, column in columns.items()}
    forms = kind.codec.forms
    _refuse_labels(columns, kind.codec.parameters, kind.codec.required)
    arguments: dict[str, Argument] = {}
    for name, column in columns.items():
        try:
            arguments[name] = argument(column, forms[name])
        except Misfit as misfit:
            misfit.steps.append(step(name))
            raise misfit.error() from None
    return arguments


def _refuse_labels(labels: Columns, parameters: tuple[str, ...], required: frozenset[str]) -> None:
    unknown = ["(no label)" if label.startswith("_no_label") else label for label in labels if label not in parameters]
    missing = [name for name in parameters if name in required and name not in labels]
    wrong = {"unknown labels": unknown, "missing": missing}
    if said := "; ".join(f"{what}: {', '.join(names)}" for what, names in wrong.items() if names):
        raise ArgsError("args", f"{said} (label each column as its parameter: {', '.join(parameters) or 'none'})")
