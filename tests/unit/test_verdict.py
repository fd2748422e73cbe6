from __future__ import annotations

import asyncio
import warnings
from datetime import timedelta
from enum import Enum, StrEnum
from typing import Any

import pytest

from jobq.backoff import Exponential, RetryPolicy
from jobq.errors import ArgsError
from jobq.model import State
from jobq.outcomes import Fail, Ok, Outcome, Permanent, Skip, Snooze
from jobq.verdict import Ended, Verdict, check_value, judge

SOON = timedelta(seconds=3)
DEAD, DONE, PENDING = State.DEAD, State.DONE, State.PENDING


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def soon(failures: int, error: BaseException) -> timedelta | None:
    return SOON


def at_once_dead(failures: int, error: BaseException) -> timedelta | None:
    return None


def judged(ended: Ended, *, failures: int = 0, max_attempts: int = 5, retry: RetryPolicy = soon) -> Verdict:
    return judge(ended, failures=failures, max_attempts=max_attempts, retry=retry)


@pytest.mark.parametrize(
    ("value", "outcome", "word"),
    [
        (None, None, "ok"),
        ("sent", "ok: sent", "ok"),
        ("", "ok", "ok"),
        ("err: not really", "ok: err: not really", "ok"),
        (Ok(), "ok", "ok"),
        (Ok("sent"), "ok: sent", "ok"),
        (Outcome("plain"), "ok: plain", "ok"),
        (Fail("no match"), "fail: no match", "fail"),
        (Fail(), "fail", "fail"),
        (Skip("fresh"), "skip: fresh", "skip"),
        ("a\x00b", "ok: a\ufffdb", "ok"),
        ("\ud800", "ok: \ufffd", "ok"),
    ],
    ids=repr,
)
def test_what_a_handler_returns_ends_its_job_as_done(value: Any, outcome: str | None, word: str) -> None:
    verdict = judged(Ended(value))

    assert verdict == Verdict(DONE, outcome)
    assert verdict.word == word
    assert not verdict.counted


@pytest.mark.parametrize(
    ("error", "failures", "most", "state", "outcome", "delay"),
    [
        (ValueError("no"), 0, 5, PENDING, "err: ValueError: no", SOON),
        (ValueError("no"), 3, 5, PENDING, "err: ValueError: no", SOON),
        (ValueError("no"), 4, 5, DEAD, "err: ValueError: no", None),
        (ValueError("no"), 9, 5, DEAD, "err: ValueError: no", None),
        (ValueError("no"), 0, 1, DEAD, "err: ValueError: no", None),
        (ValueError(), 0, 5, PENDING, "err: ValueError: ", SOON),
        (Permanent("no recipient"), 0, 5, DEAD, "err: jobq.outcomes.Permanent: no recipient", None),
        (ArgsError("args.to", "missing"), 0, 5, DEAD, "err: jobq.errors.ArgsError: args.to: missing", None),
        (SystemExit(1), 0, 5, PENDING, "err: SystemExit: 1", SOON),
        (KeyboardInterrupt(), 0, 5, PENDING, "err: KeyboardInterrupt: ", SOON),
        (GeneratorExit(), 0, 5, PENDING, "err: GeneratorExit: ", SOON),
        (TimeoutError("late"), 0, 5, PENDING, "err: TimeoutError: late", SOON),
        (asyncio.CancelledError(), 0, 5, PENDING, "err: asyncio.exceptions.CancelledError: ", SOON),
        (ValueError("a\x00\ud800"), 0, 5, PENDING, "err: ValueError: a\ufffd\ufffd", SOON),
        (
            Unprintable(),
            0,
            5,
            PENDING,
            f"err: {__name__}.Unprintable: <no text: __str__ raised RuntimeError>",
            SOON,
        ),
    ],
    ids=lambda value: ascii(type(value).__name__) if isinstance(value, BaseException) else None,
)
def test_what_a_handler_raises_is_counted_and_retried_or_dead(
    error: BaseException, failures: int, most: int, state: State, outcome: str, delay: timedelta | None
) -> None:
    verdict = judged(Ended(error=error), failures=failures, max_attempts=most)

    assert verdict == Verdict(state, outcome, delay, counted=True)
    assert verdict.word == ("dead" if state is DEAD else "retry")


def test_a_snooze_is_no_failure_even_in_the_last_attempt() -> None:
    verdict = judged(Ended(error=Snooze(timedelta(hours=1), "later")), failures=4, max_attempts=5)

    assert verdict == Verdict(PENDING, delay=timedelta(hours=1))
    assert verdict.word == "snooze"


def test_a_policy_can_declare_a_job_dead() -> None:
    verdict = judged(Ended(error=KeyError("k")), retry=at_once_dead)

    assert verdict == Verdict(DEAD, "err: KeyError: 'k'", counted=True)


class CardDeclined(ValueError): ...


class Hostile(type):
    def __instancecheck__(cls, instance: object) -> bool:
        raise SystemExit

    def __subclasscheck__(cls, subclass: type) -> bool:
        raise SystemExit


class Strange(Exception, metaclass=Hostile): ...


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (ValueError("no"), DEAD),
        (CardDeclined("no"), DEAD),
        (TimeoutError("late"), DEAD),
        (Strange("no"), DEAD),
        (KeyError("k"), PENDING),
        (Exception("no"), PENDING),
        (Snooze(SOON), PENDING),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_exceptions_that_no_retry_would_mend_end_the_job_at_once(error: Exception, state: State) -> None:
    verdict = judge(
        Ended(error=error), failures=0, max_attempts=5, retry=soon, no_retry_on=(ValueError, TimeoutError, Strange)
    )

    assert verdict.state is state
    assert verdict.word == {DEAD: "dead", PENDING: "snooze" if isinstance(error, Snooze) else "retry"}[state]


def test_the_policy_hears_of_this_failure_as_one_more() -> None:
    heard: list[int] = []

    def policy(failures: int, error: BaseException) -> timedelta | None:
        heard.append(failures)
        return SOON

    judged(Ended(error=KeyError("k")), failures=2, retry=policy)

    assert heard == [3]


def test_f13_a_job_with_thousands_of_failures_is_retried_within_the_cap() -> None:
    verdict = judged(Ended(error=KeyError("k")), failures=5_000, max_attempts=10_000, retry=Exponential())

    assert verdict.state is PENDING
    assert verdict.delay is not None
    assert timedelta(0) < verdict.delay <= timedelta(minutes=10)


def test_a_long_text_is_cut_to_what_is_stored() -> None:
    outcome = judged(Ended("x" * 10**6)).outcome or ""

    assert outcome.startswith("ok: xxx")
    assert len(outcome) < 2_100


class Color(str, Enum):  # noqa: UP042 - as users write it; its str() is `Color.RED`
    RED = "red"


class Shade(StrEnum):
    DARK = "dark"


class Broken(str):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("value", "text"),
    [(Color.RED, "red"), (Shade.DARK, "dark"), (Broken("kept"), "kept")],
    ids=["enum", "str enum", "broken"],
)
def test_any_kind_of_str_is_taken_as_the_text_that_it_is(value: str, text: str) -> None:
    assert judged(check_value(value)).outcome == f"ok: {text}"


@pytest.mark.parametrize("value", [None, "text", Ok("a"), Fail("b"), Skip("c")], ids=repr)
def test_what_a_handler_may_return_is_its_end(value: Any) -> None:
    assert check_value(value) == Ended(value)


class OwnWord(Outcome):
    word = "sent"  # type: ignore[assignment]


class NoText(Skip):
    def __init__(self) -> None:
        pass


@pytest.mark.parametrize(
    "value", [5, True, b"bytes", {"a": 1}, object(), OwnWord("x"), NoText()], ids=lambda v: type(v).__name__
)
def test_what_is_no_outcome_is_a_permanent_error_that_says_so(value: Any) -> None:
    ended = check_value(value)

    assert isinstance(ended.error, Permanent)
    assert f"this one {type(value).__name__}" in str(ended.error)
    assert judged(ended).state is DEAD


def test_a_subclass_of_an_outcome_is_one() -> None:
    class Fresh(Skip):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert judged(check_value(Fresh("since yesterday"))).outcome == "skip: since yesterday"


def test_a_plain_handler_that_returns_a_coroutine_is_told_so() -> None:
    async def forgotten() -> None: ...

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nor is there a word about a coroutine that was never awaited
        ended = check_value(forgotten())

    assert isinstance(ended.error, Permanent)
    assert "async def" in str(ended.error)
