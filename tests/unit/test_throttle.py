"""The laws of throttles, without a clock: what comes in decides what comes out."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq import per_minute
from jobq.errors import OptionError, OptionTypeError
from jobq.throttle import wait_after

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
ZERO = timedelta(0)
RATES = st.floats(0.01, 100_000) | st.integers(1, 100_000)
ELAPSED = st.timedeltas(ZERO, timedelta(days=1))
OUTCOMES = st.sampled_from(
    ["ok", "ok: sent", "fail: no", "skip", "snooze", "err: ValueError: 429", "err: TimeoutError"]
)


class StatusError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"server said {status}")
        self.response = SimpleNamespace(status_code=status)


@given(RATES, OUTCOMES, ELAPSED)
def test_a_job_and_its_wait_take_its_share_of_the_minute_or_as_long_as_the_job(
    rate: float, outcome: str, elapsed: timedelta
) -> None:
    wait = per_minute(rate)(outcome, None, elapsed)

    assert wait + elapsed == max(MINUTE / rate, elapsed)


@given(RATES, st.lists(ELAPSED, min_size=1, max_size=20))
def test_of_jobs_one_after_the_other_no_more_start_in_a_minute_than_asked_for(
    rate: float, lengths: list[timedelta]
) -> None:
    throttle = per_minute(rate)
    starts, now = [], ZERO
    for elapsed in lengths:
        starts.append(now)
        now += elapsed + throttle("ok", None, elapsed)

    within = [start for start in starts if start < MINUTE]
    assert len(within) <= rate + 1


@given(RATES, ELAPSED, st.timedeltas(ZERO, timedelta(days=30)))
def test_a_backoff_replaces_the_share_for_outcomes_that_begin_so(
    rate: float, elapsed: timedelta, backoff: timedelta
) -> None:
    throttle = per_minute(rate, backoff={"err: 429": backoff})

    assert throttle("err: 429 Too Many Requests", None, elapsed) == max(ZERO, backoff - elapsed)
    assert throttle("fail: err: 429", None, elapsed) == per_minute(rate)("ok", None, elapsed)


@given(OUTCOMES, ELAPSED, ELAPSED)
def test_the_longer_a_job_took_the_shorter_is_the_wait(outcome: str, one: timedelta, other: timedelta) -> None:
    throttle = per_minute(2, backoff={"err": HOUR})
    shorter, longer = sorted([one, other])

    assert throttle(outcome, None, shorter) >= throttle(outcome, None, longer) >= ZERO
    assert throttle(outcome, None, shorter) == throttle(outcome, None, shorter)


KNOWN_BY: dict[str, tuple[str, BaseException | None]] = {
    "its recorded text": ("err: 429", None),
    "its message": ("err: RuntimeError: 429 Too Many Requests", RuntimeError("429 Too Many Requests")),
    "the status of its response": ("err: StatusError: server said 429", StatusError(429)),
}


@pytest.mark.parametrize(("outcome", "error"), KNOWN_BY.values(), ids=KNOWN_BY)
def test_an_error_is_known_by(outcome: str, error: BaseException | None) -> None:
    throttle = per_minute(150, backoff={"err: 429": timedelta(minutes=5)})

    assert throttle(outcome, error, timedelta(seconds=1)) == timedelta(minutes=4, seconds=59)


def test_the_first_beginning_that_fits_counts() -> None:
    throttle = per_minute(60, backoff={"err: 50": HOUR, "err: 503": 2 * HOUR, "err": 3 * HOUR})

    assert [throttle(text, None, ZERO) for text in ("err: 503", "err: 400", "ok")] == [
        HOUR, 3 * HOUR, timedelta(seconds=1),
    ]  # fmt: skip


def test_a_message_that_cannot_be_had_is_no_trouble() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    assert per_minute(60, backoff={"err: 429": HOUR})("err: Silent", Silent(), ZERO) == timedelta(seconds=1)


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), 1_000_001])
def test_a_rate_is_a_number_of_jobs_a_minute(rate: float) -> None:
    with pytest.raises(OptionError, match="per_minute"):
        per_minute(rate)


WRONG: list[Any] = [True, "150", None]


@pytest.mark.parametrize("rate", WRONG)
def test_a_rate_is_no_text(rate: Any) -> None:
    with pytest.raises(OptionTypeError, match="per_minute"):
        per_minute(rate)


BACKOFFS: dict[str, tuple[dict[Any, Any], type[Exception]]] = {
    "a number as prefix": ({429: HOUR}, OptionTypeError),
    "seconds": ({"err": 300}, OptionTypeError),
    "negative": ({"err": -HOUR}, OptionError),
    "for ever": ({"err": timedelta.max}, OptionError),
}


@pytest.mark.parametrize(("backoff", "error"), BACKOFFS.values(), ids=BACKOFFS)
def test_a_backoff_is_by_text_and_span(backoff: dict[Any, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="backoff"):
        per_minute(150, backoff=backoff)


@given(st.timedeltas(timedelta(days=-3650), timedelta(days=3650)))
def test_what_a_throttle_says_counts_from_zero_on(said: timedelta) -> None:
    assert wait_after(lambda outcome, error, elapsed: said, "ok", None, ZERO) == max(ZERO, said)


@pytest.mark.parametrize("said", [None, 1.5, "1s", timedelta.max])
def test_what_is_no_wait_is_an_error(said: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="a throttle returns"):
        wait_after(lambda outcome, error, elapsed: said, "ok", None, ZERO)
