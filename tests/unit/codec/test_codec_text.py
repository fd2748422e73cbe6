"""Faults F01 to F05, at the codec: the error comes before any SQL, and names the path."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobq.codec import MAX_BYTES, encode_untyped
from jobq.errors import ArgsError, JobqError


def untyped_error(value: Any) -> str:
    with pytest.raises(ArgsError) as caught:
        encode_untyped((), {"x": value})
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("a\0b", "args.x: NUL character, jsonb cannot hold it"),
        ({"k": ["a", "\0"]}, "args.x.k[1]: NUL character, jsonb cannot hold it"),
        ({"a\0b": 1}, r"args.x: key 'a\x00b': NUL character, jsonb cannot hold it"),
        (["\\u0000", "\0"], "args.x[1]: NUL character, jsonb cannot hold it"),
    ],
)
def test_f01_a_nul_character_is_refused_with_its_path(value: Any, error: str) -> None:
    assert untyped_error(value) == error


@pytest.mark.parametrize("value", ["\\u0000", "\\\\u0000", ["\\u0000"], {"\\u0000": 1}])
def test_f01_six_plain_characters_are_no_nul(value: Any) -> None:
    assert json.loads(encode_untyped((), {"x": value})) == {"x": value}


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"caf\xe9".decode("utf-8", "surrogateescape"), r"args.x: lone surrogate '\udce9', jsonb cannot hold it"),
        (["\ud800"], r"args.x[0]: lone surrogate '\ud800', jsonb cannot hold it"),
        ({"\ud800": 1}, r"args.x: key '\ud800': lone surrogate '\ud800', jsonb cannot hold it"),
    ],
)
def test_f02_a_lone_surrogate_is_refused_with_its_path(value: Any, error: str) -> None:
    assert untyped_error(value) == error


def test_f02_an_emoji_is_ordinary_text() -> None:
    assert json.loads(encode_untyped((), {"x": "🚀"})) == {"x": "🚀"}


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (float("nan"), "args.x: nan has no JSON form"),
        ([1, float("inf")], "args.x[1]: inf has no JSON form"),
    ],
)
def test_f03_nan_and_infinity_are_refused_with_their_path(value: Any, error: str) -> None:
    assert untyped_error(value) == error


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [101, 20_000])
def test_f04_deep_nesting_is_refused(depth: int) -> None:
    assert "nested more than 100 deep" in untyped_error(nested(depth))


def test_f04_a_hundred_levels_are_taken_on_both_sides(trial: Any) -> None:
    assert json.loads(encode_untyped((), {"x": nested(100)})) == {"x": nested(100)}
    assert trial(Any).round_trip(nested(100)) == nested(100)


def test_f04_a_value_without_json_form_is_refused() -> None:
    assert untyped_error({1, 2}).startswith("args.x: set {1, 2} is not a JSON value; ")
    assert untyped_error(10**5000).startswith("args.x: int of more than 4300 digits")
    assert json.loads(encode_untyped((), {"x": 2**63, "y": 2**53 + 1})) == {"x": 2**63, "y": 2**53 + 1}


@pytest.mark.parametrize("annotation", [int, Any, str])
@pytest.mark.parametrize(
    "text",
    [
        '{"x":' + "9" * 5000 + "}",
        '{"x":' + "[" * 2000 + "]" * 2000 + "}",
        '{"x":' + "[" * 200 + "]" * 200 + "}",
        '{"x":' + "[" * 200_000 + "]" * 200_000 + "}",
        '{"x":NaN}',
        '{"x":',
        "",
        "[]",
        "null",
        '"x"',
    ],
    ids=["digits", "levels", "few levels", "many levels", "nan", "cut", "empty", "array", "null", "string"],
)
def test_f04_a_poison_row_is_an_args_error_at_claim(trial: Any, annotation: Any, text: str) -> None:
    with pytest.raises(ArgsError, match=r"^args"):
        trial(annotation).codec.decode(text)


@pytest.mark.parametrize("value", [{1: "a", "1": "b"}, {True: 1}, {None: 1}, {(1, 2): 1}])
def test_f05_a_key_that_is_no_text_is_refused_by_name(trial: Any, value: Any) -> None:
    key = next(iter(value))

    assert untyped_error(value) == f"args.x: key {key!r}: expected str, got {type(key).__name__}"
    assert trial(dict).send_error(value).startswith(f"args.x: key {key!r}: expected str, got ")


def test_f05_a_tuple_arrives_as_a_list_where_no_handler_is_at_hand() -> None:
    assert encode_untyped((), {"t": (1, 2), "z": [{"a": ()}]}) == '{"t":[1,2],"z":[{"a":[]}]}'


def test_f12_equal_arguments_have_one_text_and_unequal_ones_another() -> None:
    def text(**args: Any) -> str:
        return encode_untyped((), args)

    assert text(a=1, b={"y": 2, "x": 1}) == text(b={"x": 1, "y": 2}, a=1)
    assert len({text(x=1), text(x=1.0), text(x="1"), text(x=True)}) == 4


def test_the_text_is_limited_to_one_mebibyte_of_utf8(trial: Any) -> None:
    around = len('{"x":""}')
    fits = "é" * ((MAX_BYTES - around) // 2)

    assert trial(str).round_trip(fits) == fits
    assert trial(str).send_error(fits + "éé") == (
        "args: 1,048,580 bytes of JSON, the limit is 1,048,576: store the data, pass its key"
    )


def test_errors_are_value_errors_of_jobq() -> None:
    assert issubclass(ArgsError, ValueError)
    assert issubclass(ArgsError, JobqError)


def test_a_value_whose_repr_fails_is_still_described(trial: Any) -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert trial(int).send_error(Broken()).startswith("args.x: expected int, got Broken <Broken instance at")
    assert trial(str).send_error(10**5000).startswith("args.x: expected str, got int ")


def test_arguments_without_a_handler_are_given_by_name() -> None:
    with pytest.raises(ArgsError, match=r"args: jobq.kind\(\) takes arguments by name only"):
        encode_untyped((1,), {})


def test_a_value_that_contains_itself_is_refused_as_too_deep() -> None:
    loop: list[Any] = []
    loop.append(loop)

    assert "nested more than 100 deep" in untyped_error(loop)
