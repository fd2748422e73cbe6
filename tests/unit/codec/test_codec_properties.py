"""The laws of the codec, for any annotation and any value."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from codec_strategies import ANYTHING, PLAIN, TREES, annotated_values, codec_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobq.codec import encode_untyped
from jobq.errors import ArgsError

QUICK = settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
CODECS = [codec_of(annotation) for annotation, _ in PLAIN] + [codec_of(list[Any]), codec_of(dict[str, float])]


@QUICK
@given(annotated_values())
def test_what_arrives_equals_what_was_passed(case: tuple[Any, Any]) -> None:
    annotation, value = case
    codec = codec_of(annotation)

    received = codec.decode(codec.encode((value,), {}))["x"]

    assert received == value
    assert type(received) is type(value)


@QUICK
@given(TREES)
def test_json_values_arrive_as_they_are(tree: Any) -> None:
    assert codec_of(Any).decode(codec_of(Any).encode((tree,), {})) == {"x": tree}
    assert json.loads(encode_untyped((), {"x": tree})) == {"x": tree}


@QUICK
@given(st.sampled_from(CODECS), ANYTHING)
def test_a_value_is_sent_as_text_that_jsonb_takes_or_refused_as_an_args_error(codec: Any, value: Any) -> None:
    with contextlib.suppress(ArgsError):
        text = codec.encode((value,), {})
        assert "\0" not in json.loads(text)
        text.encode()
        codec.decode(text)


@QUICK
@given(st.sampled_from(CODECS), TREES | st.floats())
def test_any_json_is_received_or_refused_as_an_args_error(codec: Any, tree: Any) -> None:
    with contextlib.suppress(ArgsError):
        codec.decode(json.dumps({"x": tree}))


@QUICK
@given(st.text(max_size=30))
def test_any_text_is_received_or_refused_as_an_args_error(text: str) -> None:
    with contextlib.suppress(ArgsError):
        codec_of(Any).decode(text)
