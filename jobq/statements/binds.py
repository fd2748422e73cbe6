"""Binds with their type written in the SQL, so that every driver agrees on it: CAST(:name AS type)."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, INTERVAL, JSONB
from sqlalchemy.types import UserDefinedType

from jobq.tables import TIMESTAMP


class Place(UserDefinedType[str]):
    """Where a row is: `(page,number)`. PostgreSQL's tid."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "TID"


TEXTS = ARRAY(sa.Text)
INTEGERS = ARRAY(sa.Integer)
SMALLINTS = ARRAY(sa.SmallInteger)
BIGINTS = ARRAY(sa.BigInteger)
FLOATS = ARRAY(sa.Double)
TIMES = ARRAY(TIMESTAMP)
PLACES = ARRAY(Place())

ZERO = sa.literal_column("0", sa.BigInteger)
SECOND = sa.literal_column("interval '1 second'", INTERVAL)
ONE = sa.literal_column("1", sa.Integer)


def param(name: str, type_: Any) -> sa.Cast[Any]:
    """A bind of a stated type. Statements are built once and take no values; these carry them."""
    return sa.cast(sa.bindparam(name), type_)


def listed(name: str, type_: Any) -> sa.Cast[Any]:
    """An array of numbers or places, bound as its text, `{1,2}`: a list's items take a driver ten times as long."""
    return sa.cast(sa.cast(sa.bindparam(name, type_=sa.Text), sa.Text), type_)


def json_param(name: str) -> sa.Cast[Any]:
    """JSON that jobq has encoded itself: bound as text, so that no driver's or engine's own encoder touches it."""
    return sa.cast(sa.cast(sa.bindparam(name, type_=sa.Text), sa.Text), JSONB)


def seconds(name: str) -> sa.ColumnElement[Any]:
    """An interval from a bind in seconds (a float): interval text would depend on the session's IntervalStyle."""
    return as_interval(param(name, sa.Double))


def as_interval(value: sa.ColumnElement[float]) -> sa.ColumnElement[Any]:
    """Seconds as an interval."""
    return SECOND.op("*", return_type=INTERVAL())(value)


def element(array: str, type_: Any, position: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """`(SELECT :array)[position]`: the inner SELECT is evaluated once, not once a row (29 -> 6 ms per 1 000 rows)."""
    held = sa.select(param(array, ARRAY(type_))).scalar_subquery()
    return sa.type_coerce(held, ARRAY(type_))[position]
