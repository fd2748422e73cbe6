from __future__ import annotations

import collections
import typing
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

import pytest

from jobq.errors import ArgsError

ID = UUID(int=7)


class Color(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("annotation", "value", "sent", "received"),
    [
        (list[int], [1, 2], [1, 2], [1, 2]),
        (list, ["a", 1], ["a", 1], ["a", 1]),
        (list["int"], [1], [1], [1]),
        (tuple[int, ...], (1, 2), [1, 2], (1, 2)),
        (tuple, (1, "a"), [1, "a"], (1, "a")),
        (typing.Tuple, (1, "a"), [1, "a"], (1, "a")),  # noqa: UP006
        (tuple[int, str], (1, "a"), [1, "a"], (1, "a")),
        (tuple[()], (), [], ()),
        (Sequence[int], (1, 2), [1, 2], [1, 2]),
        (Sequence[int], [1, 2], [1, 2], [1, 2]),
        (set[str], {"b", "a", "10"}, ["10", "a", "b"], {"a", "b", "10"}),
        (set[int], {10, 9}, [10, 9], {9, 10}),
        (frozenset[int], frozenset({1}), [1], frozenset({1})),
        (dict[str, int], {"a": 1}, {"a": 1}, {"a": 1}),
        (dict, {"a": [1]}, {"a": [1]}, {"a": [1]}),
        (dict[UUID, UUID], {ID: ID}, {str(ID): str(ID)}, {ID: ID}),
        (dict[date, int], {date(2026, 1, 1): 1}, {"2026-01-01": 1}, {date(2026, 1, 1): 1}),
        (dict[Color, int], {Color.RED: 1}, {"red": 1}, {Color.RED: 1}),
        (dict[Literal["a"], int], {"a": 1}, {"a": 1}, {"a": 1}),
        (dict[str, int], collections.Counter("a"), {"a": 1}, {"a": 1}),
        (Mapping[str, int], collections.ChainMap({"a": 1}), {"a": 1}, {"a": 1}),
        (list[dict[str, tuple[int, ...]]], [{"a": (1,)}], [{"a": [1]}], [{"a": (1,)}]),
    ],
)
def test_a_container_travels_as_an_array_or_object(
    trial: Any, annotation: Any, value: Any, sent: Any, received: Any
) -> None:
    assert trial(annotation).send(value) == sent
    back = trial(annotation).round_trip(value)
    assert (back, type(back)) == (received, type(received))


@pytest.mark.parametrize(
    ("annotation", "value", "error"),
    [
        (list[int], (1, 2), "args.x: expected list[int], got tuple (1, 2)"),
        (tuple[int, ...], [1], "args.x: expected tuple[int, ...], got list [1]"),
        (Sequence[str], "abc", "args.x: expected Sequence[str], got str 'abc'"),
        (set[int], frozenset({1}), "args.x: expected set[int], got frozenset frozenset({1})"),
        (set[int], {"a"}, "args.x['a']: expected int, got str 'a'"),
        (tuple[int, str], (1,), "args.x: expected 2 items, got 1"),
        (tuple[int, str], (1, 2), "args.x[1]: expected str, got int 2"),
        (list[int], [1, "no"], "args.x[1]: expected int, got str 'no'"),
        (dict[str, list[int]], {"a": [1, "no"]}, "args.x.a[1]: expected int, got str 'no'"),
        (dict[str, int], {"a b": "no"}, "args.x['a b']: expected int, got str 'no'"),
        (dict[str, int], {1: 1}, "args.x: key 1: expected str, got int 1"),
        (dict[UUID, int], {"a": 1}, "args.x: key 'a': expected UUID, got str 'a'"),
        (set[float], {float("nan"), 1.0}, "args.x: nan has no JSON form"),
    ],
)
def test_an_error_names_the_path(trial: Any, annotation: Any, value: Any, error: str) -> None:
    assert trial(annotation).send_error(value) == error


@pytest.mark.parametrize(
    ("annotation", "tree", "error"),
    [
        (list[int], {}, "args.x: expected list[int], got dict {}"),
        (list[int], [1, 1.5], "args.x[1]: expected int, got float 1.5"),
        (tuple[int, str], "ab", "args.x: expected tuple[int, str], got str 'ab'"),
        (tuple[int, str], [1, "a", 2], "args.x: expected 2 items, got 3"),
        (set[int], 5, "args.x: expected set[int], got int 5"),
        (set[Any], [[1]], "args.x: an element that cannot be in a set (a list or an object)"),
        (dict[str, int], [], "args.x: expected dict[str, int], got list []"),
        (dict[UUID, int], {"a": 1}, "args.x: key 'a': expected UUID, got str 'a'"),
    ],
)
def test_another_json_type_is_refused_at_claim(trial: Any, annotation: Any, tree: Any, error: str) -> None:
    assert trial(annotation).receive_error(tree) == error


def test_equal_sets_and_dicts_have_one_text(trial: Any) -> None:
    words = [f"word{number}" for number in range(100)]

    sets = {trial(set[str]).codec.encode((set(order),), {}) for order in (words, words[::-1])}
    dicts = {trial(dict[str, int]).codec.encode((dict.fromkeys(order, 1),), {}) for order in (words, words[::-1])}

    assert len(sets) == len(dicts) == 1


def test_f05_two_keys_that_fall_together_are_refused(trial: Any) -> None:
    class Odd(str):
        __slots__ = ()
        __hash__ = object.__hash__

        def __eq__(self, other: object) -> bool:
            return self is other

    assert trial(dict[str, int]).send_error({Odd("a"): 1, Odd("a"): 2}) == "args.x: two keys have the same text in JSON"


def test_an_instant_in_two_zones_is_two_texts_but_one_key(trial: Any) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)

    assert trial(dict[datetime, int]).round_trip({noon: 1}) == {noon: 1}


@pytest.mark.parametrize(
    ("annotation", "error"),
    [
        (dict[int, str], "keys must be text in JSON (str, UUID, date, a str Enum or Literal), not int"),
        (dict[Any, str], "not Any"),
        (dict[str | None, str], "not str | None"),
        (list[bytes], "bytes has no JSON form of its own: pass base64 in a str"),
        (tuple[int, *tuple[str, ...]], "unpacked"),
        (list[int, str], "takes 1 type arguments, got 2"),  # type: ignore[misc]
    ],
)
def test_a_container_without_json_form_is_refused_at_registration(refusal: Any, annotation: Any, error: str) -> None:
    assert refusal(annotation).startswith("parameter 'x': ")
    assert error in refusal(annotation)


def test_a_long_path_is_cut_in_the_message(trial: Any) -> None:
    value: Any = object
    for _ in range(20):
        value = [value]

    with pytest.raises(ArgsError) as caught:
        trial(Any).codec.encode((value,), {})

    assert caught.value.path == "args.x[0][0][0][0]...[0][0][0]"
