"""The law of the codec through a real jsonb, which rewrites numbers, sorts keys and drops spaces."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from codec_strategies import TREES, annotated_values, codec_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects.postgresql import JSONB

from jobq.codec import Codec, encode_untyped
from jobq.errors import ArgsError

SLOWER = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
THROUGH_JSONB = sa.select(sa.cast(sa.cast(sa.bindparam("text", type_=sa.Text), JSONB), sa.Text))


def through_jsonb(connection: sa.Connection, text: str) -> str:
    return str(connection.execute(THROUGH_JSONB, {"text": text}).scalar_one())


@SLOWER
@given(case=annotated_values())
def test_what_arrives_through_jsonb_equals_what_was_passed(connection: sa.Connection, case: tuple[Any, Any]) -> None:
    annotation, value = case
    codec = codec_of(annotation)

    received = codec.decode(through_jsonb(connection, codec.encode((value,), {})))["x"]

    assert received == value
    assert type(received) is type(value)


@SLOWER
@given(tree=TREES)
def test_json_values_arrive_through_jsonb_as_they_are(connection: sa.Connection, tree: Any) -> None:
    text = through_jsonb(connection, encode_untyped((), {"x": tree}))

    assert codec_of(Any).decode(text) == {"x": tree}


@SLOWER
@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_arrives_through_jsonb_equal(connection: sa.Connection, value: float) -> None:
    for annotation in (float, float | int, Any):
        codec = codec_of(annotation)
        assert codec.decode(through_jsonb(connection, codec.encode((value,), {}))) == {"x": value}


@pytest.mark.parametrize("annotation", [int, Any])
@pytest.mark.parametrize("args", ['{"x":' + "9" * 5000 + "}", '{"x":' + "[" * 2000 + "]" * 2000 + "}"])
def test_f04_what_jsonb_holds_and_python_does_not_read_is_an_args_error(
    connection: sa.Connection, annotation: Any, args: str
) -> None:
    text = through_jsonb(connection, args)

    with pytest.raises(ArgsError, match=r"^args"):
        codec_of(annotation).decode(text)


def test_f01_six_plain_characters_come_back_equal(connection: sa.Connection) -> None:
    def handler(x: str) -> None: ...

    codec = Codec.of(handler)

    assert codec.decode(through_jsonb(connection, codec.encode(("\\u0000",), {}))) == {"x": "\\u0000"}
