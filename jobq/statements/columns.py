"""Columns as arguments: SQL that gives a column's values the JSON form that jobq/codec gives the same values.

So one argument has one JSON text, and one derived key, whether it came from Python or from a SELECT; but for floats
from 1e16 on and Decimals under 0.000001, which the two write differently at times (equal once they are read). Rows
whose value has no such form are told by a condition, so that jobq refuses them and not the database.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, Flag
from functools import reduce
from itertools import islice
from types import NoneType
from typing import Any, TypeAlias
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import JSONB

from jobq.codec.form import Form, Misfit

Element: TypeAlias = "sa.ColumnElement[Any]"

DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]
MOST_MEMBERS = 50  # PostgreSQL gives a function at most 100 arguments
ZONE = "DateTime(timezone=True)"
NAIVE = (
    f"a timestamp without time zone: say which one it is in, func.timezone('UTC', column, type_={ZONE})"
    f" (now() has one: func.now(type_={ZONE}))"
)
NOT_FINITE = ("NaN", "Infinity", "-Infinity")


@dataclass(frozen=True, slots=True)
class Argument:
    """A column as a member of args, and the conditions of rows that have no such member, each with what is wrong."""

    value: Element
    unfit: tuple[tuple[Element, str], ...] = ()


def argument(column: Element, form: Form) -> Argument:
    """A column as a parameter takes it. Raises: Misfit, when the column's type cannot be the parameter's."""
    made = _converted(column, form)
    if "null" in form.shapes:
        return made
    return Argument(made.value, ((column.is_(None), f"expected {form.name}, got NULL"), *made.unfit))


def object_of(members: Mapping[str, Element]) -> Element:
    """The JSON object with these members."""
    pairs = iter(members.items())
    parts: list[Element] = []
    while part := dict(islice(pairs, MOST_MEMBERS)):
        flat = [each for name, value in part.items() for each in (_text(name), value)]
        parts.append(sa.func.jsonb_build_object(*flat, type_=JSONB))
    return reduce(lambda one, other: one.op("||", return_type=JSONB)(other), parts or [_json("{}")])


def python_type(column: Element) -> type[Any]:
    """What the ORM would make of the column's values; `object` where that is not known."""
    try:
        known: type[Any] = database_type(column).python_type
    except NotImplementedError:
        return object
    return known


def database_type(column: Element) -> Any:
    """The type that the database knows: what a TypeDecorator does in Python does not happen in a SELECT."""
    type_: Any = column.type
    while isinstance(type_, sa.types.TypeDecorator) and not isinstance(type_, sa.Interval):
        type_ = type_.load_dialect_impl(DIALECT)
    return type_


def refuse_naive(column: Element) -> None:
    """Raises: Misfit, for a timestamp without time zone."""
    if not getattr(database_type(column), "timezone", False):
        raise Misfit(NAIVE)


def _converted(column: Element, form: Form) -> Argument:
    type_, python = database_type(column), python_type(column)
    if isinstance(type_, sa.JSON):
        if form.python is None or form.python is object:
            return Argument(column)
    elif isinstance(python, type) and issubclass(python, Enum):
        if form.python is python or (form.python in (str, int) and issubclass(python, form.python)):
            return _members(column, type_)
    elif (values := _choice(form)) is not None:
        if {type(value) for value in values} - {NoneType} == {python}:
            return _one_of(column, values, form.name)
    elif (convert := CONVERSIONS.get((form.python, python))) is not None:
        return convert(column)
    raise Misfit(_no_way(form, type_, python))


def _no_way(form: Form, type_: Any, python: type[Any]) -> str:
    if form.python is None:
        way_out = "give it as JSON, cast(func.to_jsonb(column), JSONB)"
    elif form.python is object:
        way_out = "annotate the parameter"
    elif isinstance(type_, sa.types.NullType):
        return f"expected {form.name}, got a column whose type is not known: cast(column, ...) to one that fits"
    else:
        way_out = "cast(column, ...) to one that fits"
    name = f"Enum of {python.__name__}" if issubclass(python, Enum) else type(type_).__name__
    return f"expected {form.name}, got a column of type {name}: {way_out}"


def _choice(form: Form) -> tuple[Any, ...] | None:
    """The JSON values of an Enum or a Literal; those of a Flag can be combined, so they are as good as any int."""
    if isinstance(form.python, tuple):
        return form.python
    if isinstance(form.python, type) and issubclass(form.python, Enum) and not issubclass(form.python, Flag):
        return tuple(member._value_ for member in form.python)
    return None


def _one_of(column: Element, values: tuple[Any, ...], name: str) -> Argument:
    known = [value for value in values if value is not None]
    compared = sa.cast(column, sa.Text) if isinstance(known[0], str) else column
    return Argument(column, ((compared.not_in(known), f"expected {name}, got another value"),))


def _members(column: Element, type_: Any) -> Argument:
    """The database has the labels of an Enum (its names, as a rule), JSON the values of its members."""
    read = type_.result_processor(DIALECT, None)
    values = {label: _json(json.dumps(read(label)._value_)) for label in type_.enums}
    label = sa.cast(column, sa.Text)
    return Argument(sa.case(values, value=label), ((label.not_in(list(values)), "got a label that its Enum lacks"),))


def _as_it_is(column: Element) -> Argument:
    return Argument(column)


def _float(column: Element) -> Argument:
    """As Python writes it: 5.0 where jsonb would have 5, and from 1e16 on without a fraction."""
    number = sa.cast(sa.cast(column, sa.Text), sa.Numeric)  # by way of text: a cast alone keeps 15 digits
    written = sa.case((sa.func.abs(number) < _number("1e16"), number + _number("0.0")), else_=number)
    too_large = sa.func.abs(number) > _number("1.7976931348623157e308")  # NaN too: numeric has it above all
    return Argument(written, ((too_large, "NaN, infinity or too large for a float: it has no JSON form"),))


def _float_of_int(column: Element) -> Argument:
    return _float(sa.cast(column, sa.Double))


def _decimal(column: Element) -> Argument:
    text = sa.cast(column, sa.Text)
    return Argument(text, ((text.in_(NOT_FINITE), "NaN or infinity: it has no JSON form"),))


def _uuid(column: Element) -> Argument:
    return Argument(sa.cast(column, postgresql.UUID))  # Uuid(native_uuid=False) is a text without hyphens


def _date(column: Element) -> Argument:
    return Argument(column, (_outside(column, "date '0001-01-01'", "date '9999-12-31'"),))


def _datetime(column: Element) -> Argument:
    """In UTC, as Python's isoformat writes it; jsonb's own text would have the offset of the session's time zone."""
    refuse_naive(column)
    pattern = sa.literal_column("'YYYY-MM-DD\"T\"HH24:MI:SS.US'", sa.Text)
    digits = sa.func.to_char(sa.func.timezone(_word("UTC"), column), pattern)
    text = sa.func.replace(digits, _word(".000000"), _word(""), type_=sa.Text) + _word("+00:00")
    bounds = "timestamptz '0001-01-01 00:00:00+00'", "timestamptz '9999-12-31 23:59:59.999999+00'"
    return Argument(text, (_outside(column, *bounds),))


def _timedelta(column: Element) -> Argument:
    """Seconds; PostgreSQL counts a month of an interval as 30 days and a year as 365.25."""
    seconds = sa.func.trim_scale(sa.cast(sa.extract("epoch", column), sa.Numeric), type_=sa.Numeric)
    size = sa.func.abs(seconds)
    too_fine = sa.and_(size >= _number("1125899906.842624"), seconds != sa.func.trunc(seconds))
    return Argument(
        seconds,
        (
            (size > _number("86399999913600"), "too long for a timedelta"),
            (too_fine, "beyond 35 years a timedelta must be of whole seconds"),
        ),
    )


def _outside(column: Element, first: str, last: str) -> tuple[Element, str]:
    within = column.between(sa.literal_column(first, column.type), sa.literal_column(last, column.type))
    return sa.not_(within), "not within the years 1 to 9999"


def _number(text: str) -> sa.ColumnElement[Decimal]:
    return sa.literal_column(text, sa.Numeric())


def _word(text: str) -> sa.ColumnElement[str]:
    return sa.literal_column(f"'{text}'", sa.Text())


def _text(value: str) -> Element:
    return sa.cast(sa.literal(value), sa.Text)


def _json(text: str) -> Element:
    return sa.cast(_text(text), JSONB)


def _same(types: tuple[type[Any], ...]) -> Iterator[tuple[Any, type[Any]]]:
    for each in types:
        yield each, each
        yield object, each


# By the type of the parameter, and what the ORM would give for the column.
CONVERSIONS: dict[tuple[Any, type[Any]], Callable[[Element], Argument]] = {
    **dict.fromkeys(_same((str, int, bool)), _as_it_is),
    (float, float): _float,
    (float, int): _float_of_int,
    (Decimal, Decimal): _decimal,
    (Decimal, int): _decimal,
    (UUID, UUID): _uuid,
    (date, date): _date,
    (datetime, datetime): _datetime,
    (timedelta, timedelta): _timedelta,
}
