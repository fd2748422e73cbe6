from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, NewType, Optional, Union
from uuid import UUID

import pytest

Key = NewType("Key", str)


@dataclass
class Cat:
    name: str


@dataclass
class Dog:
    name: str


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str | None, None),
        (Optional[str], "a"),  # noqa: UP045
        (int | str, "5"),
        (int | str, 5),
        (Union[int, list[int], None], [1]),  # noqa: UP007
        (int | float, 5),
        (int | float, 5.5),
        (float | int, 5),
        (bool | int, True),
        (bool | int, 1),
        (UUID | int | None, UUID(int=1)),
        (Cat | str, Cat("Tom")),
        (Cat | list[Cat], [Cat("Tom")]),
        (Any | None, {"a": 1}),
        (Key | None, "a"),
        (Key | str, "a"),
        (Literal["a"] | int, 5),
    ],
)
def test_a_union_keeps_value_and_type(trial: Any, annotation: Any, value: Any) -> None:
    received = trial(annotation).round_trip(value)

    assert received == value
    assert type(received) is type(value)


@pytest.mark.parametrize(
    ("annotation", "error"),
    [
        (str | UUID, "str | UUID: both are a JSON string, a worker could not tell them apart"),
        (date | datetime, "date | datetime: both are a JSON string, a worker could not tell them apart"),
        (int | timedelta, "int | timedelta: both are a JSON number, a worker could not tell them apart"),
        (Decimal | int, "Decimal | int: both are a JSON number, a worker could not tell them apart"),
        (list[int] | set[int], "list[int] | set[int]: both are a JSON array, a worker could not tell them apart"),
        (Cat | Dog, "Cat | Dog: both are a JSON object, a worker could not tell them apart"),
        (Cat | dict[str, int], "Cat | dict[str, int]: both are a JSON object, a worker could not tell them apart"),
        (str | Literal["a"], "str | Literal['a']: both are a JSON string, a worker could not tell them apart"),
        (Any | UUID, "Any | UUID: both are a JSON string, a worker could not tell them apart"),
    ],
)
def test_two_arms_of_one_json_type_are_refused_at_registration(refusal: Any, annotation: Any, error: str) -> None:
    assert refusal(annotation) == f"parameter 'x': {error}"


@pytest.mark.parametrize(
    ("annotation", "value", "error"),
    [
        (int | str, 1.5, "args.x: expected int | str, got float 1.5"),
        (str | None, 5, "args.x: expected str, got int 5"),
        (int | list[int], [1, "no"], "args.x[1]: expected int, got str 'no'"),
        (datetime | int, datetime(2026, 1, 1), "args.x: naive datetime, give it a time zone"),
        (int | float, "5", "args.x: expected int | float, got str '5'"),
    ],
)
def test_an_error_in_a_union_says_what_is_nearest(trial: Any, annotation: Any, value: Any, error: str) -> None:
    assert trial(annotation).send_error(value) == error


def test_a_json_type_of_no_arm_is_refused_at_claim(trial: Any) -> None:
    assert trial(int | list[int] | str).receive_error({}) == "args.x: expected int | list[int] | str, got dict {}"


def test_an_integer_in_json_goes_to_the_int_of_int_or_float(trial: Any) -> None:
    assert type(trial(float | int).receive(5)) is int
    assert type(trial(float | int).receive(5.0)) is float


def test_a_large_float_beside_int_is_sent_as_the_integer_it_equals(trial: Any) -> None:
    assert trial(float | int).codec.encode((7.205759403792251e16,), {}) == '{"x":72057594037922512}'
    assert trial(float).codec.encode((7.205759403792251e16,), {}) == '{"x":7.205759403792251e+16}'
