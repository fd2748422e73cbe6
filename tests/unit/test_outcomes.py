from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobq.outcomes import WORDS, Fail, Ok, Outcome, Permanent, Skip, Snooze, read_outcome

TEXTS = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (None, "ok"),
        ("", "ok"),
        ("ok", "ok"),
        ("ok: sent", "ok"),
        ("ok: err: quoted", "ok"),
        ("fail", "fail"),
        ("fail: no match", "fail"),
        ("skip: fresh", "skip"),
        ("err: ValueError: no", "err"),
        ("err", "err"),
        ("okay: written by hand", "err"),
        ("OK: written by hand", "err"),
        ("anything", "err"),
        (": nothing", "err"),
    ],
)
def test_a_stored_outcome_is_read_back_as_one_of_four_words(text: str | None, word: str) -> None:
    assert read_outcome(text) == word


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.sampled_from([Ok, Fail, Skip]), TEXTS)
def test_what_was_written_is_read_back_whatever_its_text(kind: type[Outcome], text: str) -> None:
    assert read_outcome(str(kind(text))) == kind.word


@settings(max_examples=200, deadline=None, derandomize=True)
@given(TEXTS)
def test_any_text_reads_as_one_of_the_words(text: str) -> None:
    assert read_outcome(text) in WORDS


def test_outcomes_compare_by_class_and_text() -> None:
    assert Ok("a") == Ok("a")
    assert Ok("a") != Ok("b")
    assert Ok("a") != Skip("a")
    assert len({Ok("a"), Ok("a"), Fail("a")}) == 2
    assert repr(Skip("fresh")) == "Skip('fresh')"


@pytest.mark.parametrize("kind", [Outcome, Ok, Fail, Skip])
@pytest.mark.parametrize("text", [5, None, b"x", ValueError("no")], ids=repr)
def test_the_text_of_an_outcome_is_a_str(kind: type[Outcome], text: Any) -> None:
    with pytest.raises(TypeError, match=f"{kind.__name__} takes a str, got"):
        kind(text)


def test_a_snooze_says_for_how_long_and_why() -> None:
    assert Snooze(timedelta(0)).delay == timedelta(0)
    assert str(Snooze(timedelta(hours=1))) == "snoozed for 1:00:00"
    assert str(Snooze(timedelta(hours=1), "closed on Sundays")) == "closed on Sundays"


@pytest.mark.parametrize(("delay", "error"), [(5, TypeError), (None, TypeError), (timedelta(seconds=-1), ValueError)])
def test_a_snooze_takes_a_span_that_is_not_negative(delay: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="Snooze takes a"):
        Snooze(delay)


def test_signals_are_exceptions_and_not_errors_of_jobq() -> None:
    from jobq.errors import JobqError

    for signal in (Permanent("no"), Snooze(timedelta(0))):
        assert isinstance(signal, Exception)
        assert not isinstance(signal, JobqError)
