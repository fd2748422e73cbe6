from __future__ import annotations

import gc
import json
import weakref
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobq.describe import (
    LONGEST_TEXT,
    LONGEST_TRACEBACK,
    as_json,
    class_name,
    describe,
    message_of,
    release_frames,
    storable,
)

QUICK = settings(max_examples=200, deadline=None, derandomize=True)
ANY_TEXT = st.text(st.characters(exclude_categories=()))  # with lone surrogates, with NUL
NOTE = 80  # characters at most that tell how much was left out


def is_storable(text: str) -> bool:
    text.encode()  # raises for a lone surrogate
    return "\x00" not in text


def caught(error: BaseException) -> BaseException:
    """The error, raised and caught: it has a traceback."""
    try:
        raise error
    except BaseException as raised:
        return raised


@QUICK
@given(ANY_TEXT)
def test_a5_any_text_becomes_storable(text: str) -> None:
    assert is_storable(storable(text))


@QUICK
@given(ANY_TEXT.map(lambda text: text * 50), st.integers(2, 500))
def test_a5_any_text_becomes_bounded(text: str, limit: int) -> None:
    made = storable(text, limit)

    assert is_storable(made)
    assert len(made) <= limit + NOTE


@QUICK
@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=LONGEST_TEXT))
def test_text_that_can_be_stored_stays_as_it_is(text: str) -> None:
    assert storable(text) == text


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("bad \x00 byte", "bad \ufffd byte"),
        ("\ud800", "\ufffd"),
        ("caf\udce9 \U0001f600", "caf\ufffd \U0001f600"),
        ("\ud83d\ude00", "\ufffd\ufffd"),
        ("\x00" * 3, "\ufffd" * 3),
    ],
    ids=ascii,
)
def test_a5_nul_and_lone_surrogates_become_the_replacement_character(text: str, made: str) -> None:
    assert storable(text) == made


def test_of_a_long_text_both_ends_are_kept() -> None:
    made = storable("a" * 5_000 + "z" * 5_000, 100)

    assert made == f"{'a' * 50} ... (9900 characters left out) ... {'z' * 50}"


class Hostile(Exception):
    """Whatever text is asked of it, it raises."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __repr__(self) -> str:
        raise RuntimeError("no text either")


class NotText(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]


class Odd(Exception):
    __module__ = "\ud800\x00"


def with_notes() -> Exception:
    error = ValueError("noted")
    error.__notes__ = 5  # type: ignore[assignment]
    return error


def in_a_circle() -> Exception:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def deep_chain() -> BaseException:
    error: BaseException = ValueError("innermost")
    for n in range(3_000):
        outer = ValueError(str(n))
        outer.__cause__ = error
        error = outer
    return error


HOSTILE = {
    "raises for any text": Hostile,
    "text that is none": NotText,
    "name that cannot be stored": Odd,
    "notes that are none": with_notes,
    "causes in a circle": in_a_circle,
    "a chain of 3000 causes": deep_chain,
    "10 MB of text": lambda: ValueError("x" * 10**7),
    "nul and surrogates": lambda: ValueError("\x00\ud800" * 2_000),
    "a group": lambda: ExceptionGroup("many", [Hostile(), ValueError("\x00")]),
    "system exit": lambda: SystemExit("\x00"),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_f35_any_exception_is_described_in_bounded_storable_text(make: Any) -> None:
    described = describe(caught(make()), attempt=3, worker="host:1")

    text = as_json(described)
    assert is_storable(text)
    assert "\\u0000" not in text
    assert json.loads(text) == described
    assert described["attempt"] == 3
    assert described["worker"] == "host:1"
    assert len(described["error"]) <= 200 + NOTE
    assert len(described["message"]) <= LONGEST_TEXT + NOTE
    assert len(described["traceback"]) <= LONGEST_TRACEBACK + NOTE


def test_a_description_names_class_message_and_place() -> None:
    described = describe(caught(KeyError("size")), attempt=1, worker="w")

    assert described["error"] == "KeyError"
    assert described["message"] == "'size'"
    assert "in caught" in described["traceback"]
    assert described["traceback"].endswith("KeyError: 'size'\n")


def test_classes_outside_of_builtins_carry_their_module() -> None:
    assert class_name(ValueError()) == "ValueError"
    assert class_name(json.JSONDecodeError("no", "", 0)) == "json.decoder.JSONDecodeError"
    assert class_name(Hostile()) == f"{__name__}.Hostile"


def test_f35_a_message_that_cannot_be_had_says_why() -> None:
    assert message_of(Hostile()) == "<no text: __str__ raised RuntimeError>"
    assert message_of(NotText()) == "<no text: __str__ raised TypeError>"


def test_a_stop_iteration_that_left_a_coroutine_is_described_as_itself() -> None:
    async def handler() -> None:
        raise StopIteration("done")

    coroutine = handler()
    try:
        coroutine.send(None)
    except RuntimeError as error:
        described = describe(error, attempt=1, worker="w")

    assert described["error"] == "StopIteration"
    assert described["message"] == "done"


class Big:
    """Something that a weak reference can watch."""


def failing_with_a_local(refs: list[weakref.ref[Big]]) -> None:
    big = Big()
    refs.append(weakref.ref(big))
    raise ValueError("no")


def failing_twice(refs: list[weakref.ref[Big]]) -> None:
    try:
        failing_with_a_local(refs)
    except ValueError as error:
        own = Big()
        refs.append(weakref.ref(own))
        raise RuntimeError("again") from error


@pytest.mark.parametrize("fail", [failing_with_a_local, failing_twice])
def test_f73_a_released_exception_keeps_no_locals_alive(fail: Any) -> None:
    refs: list[weakref.ref[Big]] = []
    kept: list[BaseException] = []
    gc.disable()
    try:
        try:
            fail(refs)
        except Exception as error:
            kept.append(error)
        assert all(ref() is not None for ref in refs)

        release_frames(kept[0])

        assert refs
        assert all(ref() is None for ref in refs)
    finally:
        gc.enable()


@dataclass(frozen=True)
class Frozen(Exception):
    code: int


class Misleading(Exception):
    exceptions = 5


class OfTexts(Exception):
    exceptions = ("not an exception",)


@pytest.mark.parametrize(
    "error",
    [
        Frozen(4),
        Misleading(),
        OfTexts(),
        in_a_circle(),
        ExceptionGroup("many", [caught(ValueError("one")), caught(Frozen(5))]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_f73_frames_of_any_exception_are_released(error: Exception) -> None:
    raised = caught(error)

    release_frames(raised)

    members = raised.exceptions if isinstance(raised, BaseExceptionGroup) else ()
    assert all(each.__traceback__ is None for each in (raised, *members))
