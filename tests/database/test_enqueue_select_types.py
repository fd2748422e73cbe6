"""Columns as arguments: the JSON that Python would have given, or a refusal that names the argument."""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from random import Random
from typing import Any, Literal
from uuid import UUID

import pytest
import sqlalchemy as sa
from select_rows import AWARE, LATER, TEXT, handler_of, stored
from sqlalchemy.dialects.postgresql import CITEXT, JSONB

from jobq.errors import ArgsError
from jobq.producer import enqueue, enqueue_many
from jobq.selection import enqueue_select
from jobq.tables import jobs

pytestmark = pytest.mark.duty("enqueue")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 10
    HIGH = 20


class Size(enum.StrEnum):
    SMALL = "s"


@dataclass
class Point:
    x: int


SAME: list[tuple[Any, Any, Any]] = [
    (str, "é'\\", sa.Text),
    (str, "Ab", CITEXT),
    (int, 2**62, sa.BigInteger),
    (bool, True, sa.Boolean),
    *[(float, value, sa.Double) for value in (5.0, 0.1, -0.0, 1e-7, 1e15, 123456789012345.6, 1e16, 1.5e300, 2.0**53)],
    (float, 2**53 + 1, sa.BigInteger),
    (float, 7, sa.Integer),
    (float, 0.1, sa.REAL),
    (Decimal, Decimal("10.50"), sa.Numeric),
    (Decimal, Decimal("-98765432109876543210.000012345678901234567890"), sa.Numeric),
    (UUID, UUID(int=5), sa.Uuid),
    (UUID, UUID(int=2**127 + 5), sa.Uuid(native_uuid=False)),
    (date, date(2024, 2, 29), sa.Date),
    (date, date.max, sa.Date),
    *[(datetime, value, AWARE) for value in (LATER, LATER.replace(microsecond=0), LATER.replace(microsecond=1))],
    (datetime, datetime.max.replace(tzinfo=UTC), AWARE),
    *[
        (timedelta, value, sa.Interval)
        for value in (
            timedelta(0),
            timedelta(seconds=-90),
            timedelta(days=3, microseconds=1),
            timedelta(days=40_000),
            timedelta(days=13_000, microseconds=5),
        )
    ],
    (Color, Color.BLUE, sa.Enum(Color, native_enum=False)),
    (Level, Level.HIGH, sa.Enum(Level, native_enum=False)),
    (str, Size.SMALL, sa.Enum(Size, native_enum=False)),
    (int, Level.LOW, sa.Enum(Level, native_enum=False)),
    (dict[str, Any], {"a": [1, None, "x"]}, JSONB),
    (Point, Point(1), JSONB),
    (Any, "text", sa.Text),
    (Any, 7, sa.Integer),
    (Literal["a", "b"], "b", sa.Text),
    (Literal[1, 2, None], 2, sa.Integer),
    (int | None, 7, sa.Integer),
]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize(("annotation", "value", "type_"), SAME, ids=lambda value: str(value)[:40])
def test_one_argument_is_the_same_json_from_python_and_from_a_select(
    connection: sa.Connection, annotation: Any, value: Any, type_: Any, zone: str
) -> None:
    connection.execute(sa.text("SET LOCAL IntervalStyle = 'iso_8601'; SET LOCAL DateStyle = 'SQL, DMY'"))
    connection.execute(sa.text("SELECT set_config('TimeZone', :zone, true)"), {"zone": zone})
    connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS citext"))
    handler = handler_of(annotation).options(unique=True)
    if isinstance(type_, sa.Enum):
        column = sa.cast(sa.literal(value.name), type_)
    else:
        column = sa.cast(sa.literal({"x": 1} if value == Point(1) else value, type_), type_)

    given = enqueue(connection, handler, x=value)
    assert enqueue_select(connection, handler.options(unique=False), sa.select(column.label("x"))) == 1

    first, second = connection.execute(sa.select(jobs.c.id, TEXT).order_by(jobs.c.id))
    assert second.text == first.text
    assert enqueue_select(connection, handler, sa.select(column.label("x"))) == 0  # the derived key is that of `given`
    assert handler.codec.decode(second.text) == handler.codec.decode(first.text)
    assert first.id == given.id


def floats(random: Random) -> list[float]:
    """Of every size, whole ones among them."""
    any_bits = [value for (value,) in struct.iter_unpack("d", random.randbytes(8 * 500)) if isfinite(value)]
    return any_bits + [float(random.randrange(10**16)) for _ in range(200)] + [random.random() for _ in range(200)]


RANDOM: list[tuple[Any, Any, Callable[[Random], list[Any]]]] = [
    (float, sa.Double, floats),
    (timedelta, sa.Interval, lambda r: [timedelta(microseconds=r.randrange(-(2**50), 2**50)) for _ in range(500)]),
    (datetime, AWARE, lambda r: [datetime.fromtimestamp(r.uniform(-6e10, 2.5e11), UTC) for _ in range(500)]),
    (Decimal, sa.Numeric, lambda r: [Decimal(r.randrange(10**12)).scaleb(-5) for _ in range(500)]),
]


@pytest.mark.parametrize(("annotation", "type_", "make"), RANDOM, ids=[row[0].__name__ for row in RANDOM])
def test_any_values_are_the_same_from_python_and_from_a_select(
    connection: sa.Connection, annotation: Any, type_: Any, make: Callable[[Random], list[Any]]
) -> None:
    handler, values = handler_of(annotation), make(Random(1))
    table = sa.Table("vals", sa.MetaData(), sa.Column("n", sa.Integer), sa.Column("x", type_), prefixes=["TEMPORARY"])
    table.create(connection)
    connection.execute(sa.insert(table), [{"n": n, "x": value} for n, value in enumerate(values)])

    enqueue_many(connection, handler, [{"x": value} for value in values])
    assert enqueue_select(connection, handler, sa.select(table.c.x).order_by(table.c.n)) == len(values)

    texts = list(connection.scalars(sa.select(TEXT).order_by(jobs.c.id)))
    pairs = list(zip(texts[: len(values)], texts[len(values) :], strict=True))
    assert [handler.codec.decode(selected)["x"] for _, selected in pairs] == values
    # From 1e16 on PostgreSQL writes some floats with one digit more than Python does.
    assert [pair for value, pair in zip(values, pairs, strict=True) if pair[0] != pair[1] and not is_large(value)] == []


def is_large(value: Any) -> bool:
    return isinstance(value, float) and abs(value) >= 1e16


def test_an_enum_of_the_database_gives_the_values_of_its_members(connection: sa.Connection) -> None:
    colors = sa.Table("colors", sa.MetaData(), sa.Column("color", sa.Enum(Color, name="color")))
    colors.create(connection)
    connection.execute(sa.insert(colors), [{"color": Color.RED}, {"color": None}])

    assert enqueue_select(connection, handler_of(Color | None), sa.select(colors.c.color.label("x"))) == 2
    assert sorted(row.text for row in stored(connection)) == ['{"x": "red"}', '{"x": null}']


def label(value: Any, type_: Any) -> sa.Select[Any]:
    return sa.select(sa.cast(value, type_).label("x"))


def test_the_values_of_an_enum_may_come_from_a_plain_column(connection: sa.Connection) -> None:
    assert enqueue_select(connection, handler_of(Color), label("red", sa.Text)) == 1
    assert enqueue_select(connection, handler_of(Level), label(20, sa.Integer)) == 1
    with pytest.raises(ArgsError, match=r"args\.x: expected Color, got another value, in 1 row of the select"):
        enqueue_select(connection, handler_of(Color), label("RED", sa.Text))


TYPES: list[tuple[Any, Any, str]] = [
    (datetime, sa.DateTime(), r"args\.x: a timestamp without time zone: say which one it is in, func\.timezone"),
    (datetime, sa.Date(), "expected datetime, got a column of type Date: cast"),
    (date, AWARE, "expected date, got a column of type DateTime"),
    (str, sa.Integer(), "expected str, got a column of type Integer: cast"),
    (int, sa.Numeric(), "expected int, got a column of type Numeric"),
    (int, sa.Boolean(), "expected int, got a column of type Boolean"),
    (float, sa.Numeric(), "expected float, got a column of type Numeric"),
    (Decimal, sa.Double(), "expected Decimal, got a column of type Double"),
    (str, sa.LargeBinary(), "expected str, got a column of type LargeBinary"),
    (str, sa.types.NullType(), "expected str, got a column whose type is not known: cast"),
    (str, JSONB(), "expected str, got a column of type JSONB"),
    (list[str], sa.ARRAY(sa.Text), r"expected list\[str\], got a column of type ARRAY: give it as JSON, cast\(func"),
    (Any, sa.Double(), "expected Any, got a column of type Double: annotate the parameter"),
    (Color, sa.Enum(Level), "expected Color, got a column of type Enum of Level"),
    (str, sa.Enum(Color), "expected str, got a column of type Enum of Color"),
    (Color, sa.Integer(), "expected Color, got a column of type Integer"),
    (Literal["a"], sa.Integer(), "expected Literal"),
]


@pytest.mark.parametrize(("annotation", "type_", "message"), TYPES, ids=lambda value: str(value)[:40])
def test_a_column_of_another_type_is_refused_before_any_sql(
    connection: sa.Connection, sent: list[str], annotation: Any, type_: Any, message: str
) -> None:
    with pytest.raises(ArgsError, match=message) as caught:
        enqueue_select(connection, handler_of(annotation), sa.select(sa.column("x", type_)))
    assert caught.value.path == "args.x"
    assert sent == []


VALUES: list[tuple[Any, Any, str]] = [
    (str, sa.cast(sa.null(), sa.Text), "expected str, got NULL"),
    (float, sa.cast("NaN", sa.Double), "NaN, infinity or too large"),
    (float, sa.cast("-Infinity", sa.Double), "NaN, infinity or too large"),
    (float, sa.cast("1e400", sa.Numeric(asdecimal=False)), "NaN, infinity or too large"),
    (Decimal, sa.cast("NaN", sa.Numeric), "NaN or infinity"),
    (datetime, sa.cast("infinity", AWARE), "not within the years 1 to 9999"),
    (datetime, sa.cast("20000-01-01", AWARE), "not within the years 1 to 9999"),
    (date, sa.cast("0044-03-15 BC", sa.Date), "not within the years 1 to 9999"),
    (timedelta, sa.cast("100000000 years", sa.Interval), "too long for a timedelta"),
    (timedelta, sa.cast("40 years 1 microsecond", sa.Interval), "beyond 35 years"),
    (Literal["a"], sa.cast("b", sa.Text), "expected Literal"),
]


@pytest.mark.parametrize(("annotation", "value", "message"), VALUES, ids=lambda value: str(value)[:40])
def test_values_without_a_json_form_are_refused_and_nothing_is_inserted(
    connection: sa.Connection, annotation: Any, value: Any, message: str
) -> None:
    good = {str: "a", float: 1.0, Decimal: Decimal(1), datetime: LATER, date: date(2000, 1, 1), timedelta: timedelta(1)}
    rest = sa.select(sa.cast(sa.literal(good.get(annotation, "a")), value.type))
    with pytest.raises(ArgsError, match=rf"{message}.*, in 1 row of the select; nothing was inserted") as caught:
        enqueue_select(connection, handler_of(annotation), sa.union_all(sa.select(value.label("x")), rest))

    assert caught.value.path == "args.x"
    assert stored(connection) == []  # and the transaction is usable
