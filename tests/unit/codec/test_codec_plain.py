from __future__ import annotations

import json
import sys
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from jobq.errors import ArgsError


class Color(StrEnum):
    RED = "red"


class Level(IntEnum):
    LOW = 0


class Text(str):
    __slots__ = ()


class Number(float):
    __slots__ = ()


@pytest.mark.parametrize(
    ("annotation", "value", "sent"),
    [
        (str, "naïve 🚀", "naïve 🚀"),
        (str, "", ""),
        (str, Color.RED, "red"),
        (str, Text("a"), "a"),
        (str, "\\u0000", "\\u0000"),
        (int, 5, 5),
        (int, Level.LOW, 0),
        (int, 2**63, 2**63),
        (int, 2**53 + 1, 2**53 + 1),
        (float, 1.5, 1.5),
        (float, 5, 5.0),
        (float, Number(2.5), 2.5),
        (float, 1e308, 1e308),
        (bool, True, True),
        (None, None, None),
        (Any, {"a": [1, 1.5, "x", None, True]}, {"a": [1, 1.5, "x", None, True]}),
        (object, [], []),
    ],
)
def test_a_value_of_the_annotated_type_is_sent_as_its_json(trial: Any, annotation: Any, value: Any, sent: Any) -> None:
    tree = trial(annotation).send(value)

    assert (tree, type(tree)) == (sent, type(sent))
    received = trial(annotation).round_trip(value)
    assert received == value
    assert type(received) is type(sent)


@pytest.mark.parametrize(
    ("annotation", "value", "error"),
    [
        (str, 5, "args.x: expected str, got int 5"),
        (str, None, "args.x: expected str, got None"),
        (str, b"a", "args.x: expected str, got bytes b'a'"),
        (int, True, "args.x: expected int, got bool True"),
        (int, 5.0, "args.x: expected int, got float 5.0"),
        (int, "5", "args.x: expected int, got str '5'"),
        (
            int,
            None,
            "args.x: expected int, got None (the key of a new object?"
            " jobq.pk(object) flushes its session and gives it)",
        ),
        (float, True, "args.x: expected float, got bool True"),
        (float, "1.5", "args.x: expected float, got str '1.5'"),
        (float, 10**400, "args.x: int too large for a float"),
        (float, float("nan"), "args.x: nan has no JSON form"),
        (float, float("-inf"), "args.x: -inf has no JSON form"),
        (bool, 1, "args.x: expected bool, got int 1"),
        (None, 0, "args.x: expected None, got int 0"),
        (Any, (1, 2), "args.x: tuple (1, 2) is not a JSON value; annotate the parameter"),
        (Any, {"a": [{1, 2}]}, "args.x.a[0]: set {1, 2} is not a JSON value; annotate the parameter"),
        (Any, Level.LOW, "args.x: Level <Level.LOW: 0> is not a JSON value; annotate the parameter"),
    ],
)
def test_nothing_is_parsed_or_coerced_at_enqueue(trial: Any, annotation: Any, value: Any, error: str) -> None:
    assert trial(annotation).send_error(value) == error


@pytest.mark.parametrize(
    ("annotation", "tree", "error"),
    [
        (str, 5, "args.x: expected str, got int 5"),
        (int, 5.0, "args.x: expected int, got float 5.0"),
        (int, True, "args.x: expected int, got bool True"),
        (int, "5", "args.x: expected int, got str '5'"),
        (float, "1", "args.x: expected float, got str '1'"),
        (float, True, "args.x: expected float, got bool True"),
        (float, 10**400, "args.x: int too large for a float"),
        (bool, 0, "args.x: expected bool, got int 0"),
        (bool, None, "args.x: expected bool, got None"),
        (None, False, "args.x: expected None, got bool False"),
    ],
)
def test_nothing_is_coerced_at_claim(trial: Any, annotation: Any, tree: Any, error: str) -> None:
    assert trial(annotation).receive_error(tree) == error


def test_an_int_has_at_most_4300_digits(trial: Any) -> None:
    largest = 10**4300 - 1

    assert trial(int).round_trip(-largest) == -largest
    assert trial(int).send_error(largest + 1) == "args.x: int of more than 4300 digits, Python does not read it back"


def test_a_raised_limit_of_python_changes_nothing(trial: Any) -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        assert trial(list[int]).send_error([10**5000]).startswith("args.x[0]: int of more than 4300 digits")
    finally:
        sys.set_int_max_str_digits(before)


def test_a_float_that_jsonb_gave_back_as_an_integer_arrives_as_a_float(trial: Any) -> None:
    received = trial(float).receive(10**16)

    assert received == 1e16
    assert type(received) is float


def test_a_number_with_a_fraction_that_no_float_holds_is_refused(trial: Any) -> None:
    with pytest.raises(ArgsError, match=r"args\.x: number too large for a float"):
        trial(float).codec.decode('{"x":1' + "0" * 400 + ".5}")


def test_minus_zero_and_zero_have_one_text(trial: Any) -> None:
    assert trial(float).codec.encode((-0.0,), {}) == trial(float).codec.encode((0.0,), {}) == '{"x":0.0}'


def test_a_parameter_without_annotation_takes_json_values() -> None:
    from jobq.codec import Codec

    def handler(x): ...  # type: ignore[no-untyped-def]

    assert json.loads(Codec.of(handler).encode(([1, "a"],), {})) == {"x": [1, "a"]}
