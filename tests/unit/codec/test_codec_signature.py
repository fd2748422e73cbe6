from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from jobq.codec import Codec
from jobq.errors import ArgsError


def send_email(to: str, subject: str = "Hello", *, copies: list[str] | None = None) -> None: ...


CODEC = Codec.of(send_email)


def error_of(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(ArgsError) as caught:
        CODEC.encode(args, kwargs)
    return str(caught.value)


@pytest.mark.parametrize(
    ("args", "kwargs", "tree"),
    [
        (("a",), {}, {"to": "a"}),
        ((), {"to": "a"}, {"to": "a"}),
        (("a", "b"), {"copies": []}, {"to": "a", "subject": "b", "copies": []}),
        (("a",), {"subject": "Hello"}, {"to": "a", "subject": "Hello"}),
    ],
)
def test_only_the_arguments_that_were_passed_are_kept(args: Any, kwargs: Any, tree: Any) -> None:
    text = CODEC.encode(args, kwargs)

    assert json.loads(text) == tree
    assert CODEC.decode(text) == tree


@pytest.mark.parametrize(
    ("args", "kwargs", "error"),
    [
        ((5,), {}, "args.to: expected str, got int 5"),
        ((), {}, "args.to: missing"),
        ((), {"subject": "a"}, "args.to: missing"),
        (("a",), {"subjct": "a"}, "args.subjct: unknown argument (known: to, subject, copies)"),
        (("a",), {"to": "b"}, "args.to: given twice, by position and by name"),
        (("a", "b", []), {}, "args: takes 2 positional arguments, got 3"),
        (("a",), {"a\0 b": 1}, r"args['a\x00 b']: unknown argument (known: to, subject, copies)"),
        (("a",), {"copies": ["a", 5]}, "args.copies[1]: expected str, got int 5"),
    ],
)
def test_a_wrong_call_is_refused_with_its_path(args: Any, kwargs: Any, error: str) -> None:
    assert error_of(*args, **kwargs) == error


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{}", "args.to: missing"),
        ('{"to":"a","sender":"b"}', "args.sender: unknown argument (known: to, subject, copies)"),
        ('{"to":null}', "args.to: expected str, got None"),
        ("[]", "args: expected a JSON object, got list []"),
    ],
)
def test_f07_args_that_no_longer_fit_are_refused_at_claim(text: str, error: str) -> None:
    with pytest.raises(ArgsError) as caught:
        CODEC.decode(text)

    assert str(caught.value) == error
    assert caught.value.path == error.partition(":")[0]


def test_the_order_of_the_arguments_makes_no_other_text() -> None:
    assert CODEC.encode((), {"to": "a", "subject": "b"}) == CODEC.encode((), {"subject": "b", "to": "a"})


def test_a_codec_tells_its_parameters() -> None:
    assert CODEC.parameters == ("to", "subject", "copies")
    assert CODEC.required == {"to"}
    assert not CODEC.can_be_called_without_arguments


def test_a_handler_without_arguments_has_an_empty_object() -> None:
    def handler() -> None: ...

    codec = Codec.of(handler)

    assert codec.can_be_called_without_arguments
    assert codec.encode((), {}) == "{}"
    assert codec.decode("{}") == {}
    with pytest.raises(ArgsError, match=r"args\.a: unknown argument \(known: none\)"):
        codec.encode((), {"a": 1})


def test_the_names_of_jobq_and_python_are_free_for_parameters() -> None:
    def handler(self: int, session: int, function: int, args: int, kwargs: int) -> None: ...

    codec = Codec.of(handler)

    given = dict.fromkeys(("self", "session", "function", "args", "kwargs"), 1)
    assert codec.decode(codec.encode((), given)) == given


def test_what_a_partial_fixes_is_no_argument() -> None:
    def handler(client: object, to: str, retries: int = 0, *, sender: str = "") -> None: ...

    codec = Codec.of(partial(handler, object(), retries=3))

    assert codec.parameters == ("to", "sender")
    assert codec.encode(("a",), {}) == '{"to":"a"}'
    with pytest.raises(ArgsError, match=r"args\.retries: unknown argument"):
        codec.encode(("a",), {"retries": 1})
