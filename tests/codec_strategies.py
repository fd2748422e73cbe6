"""Annotations with values that fit them, for the laws of the codec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Literal, TypedDict
from uuid import UUID

from hypothesis import strategies as st

from jobq.codec import Codec


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 0
    HIGH = 1


@dataclass(frozen=True)
class Line:
    sku: str
    count: int = 1
    price: Decimal | None = None


class Address(TypedDict):
    street: str
    zip: str | None


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
ZONES = st.integers(-86_399, 86_399).map(lambda seconds: timezone(timedelta(seconds=seconds))) | st.just(UTC)
EXACT = timedelta(microseconds=2**50)
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False)

PLAIN: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, TEXT),
    (int, st.integers() | st.integers(-(10**4299), 10**4299)),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (None, st.none()),
    (Decimal, DECIMALS),
    (UUID, st.uuids()),
    (date, st.dates()),
    (datetime, st.datetimes(timezones=ZONES)),
    (timedelta, st.timedeltas(-EXACT, EXACT) | st.timedeltas().map(lambda span: timedelta(span.days, span.seconds))),
    (Color, st.sampled_from(Color)),
    (Level, st.sampled_from(Level)),
    (Literal["a", 1, True, None], st.sampled_from(["a", 1, True, None])),
    (Line, st.builds(Line, TEXT, st.integers(-(2**70), 2**70), st.none() | DECIMALS)),
    (Address, st.fixed_dictionaries({"street": TEXT, "zip": st.none() | TEXT})),
    (int | float, st.integers(-(2**70), 2**70)),
    (int | str | None, st.none() | st.integers(-(2**70), 2**70) | TEXT),
]
KEYS = [(str, TEXT), (UUID, st.uuids()), (date, st.dates()), (Color, st.sampled_from(Color))]
HASHABLE = [pair for pair in PLAIN if pair[0] is not Address]
TREES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
ANYTHING = st.one_of(
    TREES,
    st.floats(),
    st.text(),
    st.binary(max_size=5),
    st.decimals(),
    st.datetimes(),
    st.complex_numbers(),
    st.sets(st.integers(), max_size=3),
    st.tuples(st.integers(), st.text(max_size=3)),
    st.dictionaries(st.integers() | st.text(max_size=3), st.floats(), max_size=3),
    st.sampled_from([Color.RED, Level.LOW, Line("a"), object(), int, 10**5000]),
    *(values for _, values in PLAIN),
)


@st.composite
def annotated_values(draw: st.DrawFn) -> tuple[Any, Any]:
    """An annotation and a value that fits it, up to two containers deep."""
    annotation, values = draw(st.sampled_from(PLAIN))
    for _ in range(draw(st.integers(0, 2))):
        annotation, values = draw(st.sampled_from(wrappers(annotation, values, draw(st.sampled_from(KEYS)))))
    return annotation, draw(values)


def wrappers(annotation: Any, values: st.SearchStrategy[Any], keys: tuple[Any, st.SearchStrategy[Any]]) -> list[Any]:
    key, key_values = keys
    lists = st.lists(values, max_size=4)
    around = [
        (list[annotation], lists),
        (Sequence[annotation], lists),
        (tuple[annotation, ...], lists.map(tuple)),
        (tuple[annotation, bool], st.tuples(values, st.booleans())),
        (dict[key, annotation], st.dictionaries(key_values, values, max_size=4)),
    ]
    if any(annotation is hashable for hashable, _ in HASHABLE):
        around.append((frozenset[annotation], st.frozensets(values, max_size=4)))
        around.append((set[annotation], st.sets(values, max_size=4)))
    return around


def codec_of(annotation: Any) -> Codec:
    def handler(x: Any) -> None: ...

    handler.__annotations__["x"] = annotation
    return Codec.of(handler)
