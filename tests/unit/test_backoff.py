from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobq.backoff import LONGEST, ByError, Exponential, RetryPolicy, delay_after
from jobq.errors import JobqError, OptionError, OptionTypeError

QUICK = settings(max_examples=200, deadline=None, derandomize=True)
BOOM = ValueError("boom")
SPANS = st.timedeltas(min_value=timedelta(milliseconds=1), max_value=LONGEST)
POLICIES = st.tuples(SPANS, SPANS).map(sorted).map(lambda pair: Exponential(base=pair[0], cap=pair[1]))
NUMBERS = st.one_of(st.integers(0, 70), st.integers(0, 2**63))


def never(failures: int, error: BaseException) -> timedelta | None:
    raise AssertionError("not to be asked")


def exactly(seconds: float) -> RetryPolicy:
    return lambda failures, error: timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 2), (1, 2), (2, 4), (3, 8), (4, 16), (9, 512), (10, 600), (11, 600), (2**64, 600)]
)
def test_the_step_doubles_from_the_base_up_to_the_cap(failures: int, seconds: int) -> None:
    assert Exponential().step(failures) == timedelta(seconds=seconds)


@pytest.mark.parametrize("failures", [0, 1, 2, 46, 47, 64, 310, 1024, 10_000])
def test_f13_a_high_number_of_failures_gives_a_delay_within_the_cap(failures: int) -> None:
    delay = Exponential()(failures, BOOM)

    assert timedelta(0) < delay <= timedelta(minutes=10)


@QUICK
@given(POLICIES, NUMBERS)
def test_f13_for_any_policy_and_number_the_delay_is_above_zero_and_within_the_cap(
    policy: Exponential, failures: int
) -> None:
    assert timedelta(0) < policy(failures, BOOM) <= policy.cap


@QUICK
@given(POLICIES, st.integers(1, 60))
def test_f13_the_step_is_the_power_that_was_never_computed_past_the_cap(policy: Exponential, failures: int) -> None:
    in_microseconds = policy.base // timedelta(microseconds=1) * 2 ** (failures - 1)
    cap = policy.cap // timedelta(microseconds=1)

    assert policy.step(failures) == timedelta(microseconds=min(cap, in_microseconds))


@pytest.mark.parametrize("failures", [1, 2, 3, 4, 5])
def test_f16_delays_spread_between_half_the_step_and_the_step(failures: int) -> None:
    policy = Exponential()
    step = policy.step(failures)

    delays = [policy(failures, BOOM) for _ in range(1_000)]

    assert all(step / 2 <= delay <= step for delay in delays)
    assert len(set(delays)) > 100
    assert min(delays) < 0.6 * step
    assert max(delays) > 0.9 * step


@QUICK
@given(POLICIES, NUMBERS, st.integers())
def test_f16_for_any_policy_the_delay_is_at_least_half_the_step(policy: Exponential, failures: int, seed: int) -> None:
    state = random.getstate()
    random.seed(seed)
    try:
        delay = policy(failures, BOOM)
    finally:
        random.setstate(state)

    rounding = timedelta(microseconds=1)
    assert policy.step(failures) / 2 - rounding <= delay <= policy.step(failures)


@pytest.mark.parametrize(
    "values",
    [
        {"base": timedelta(0)},
        {"base": timedelta(seconds=-1)},
        {"base": timedelta(minutes=11)},
        {"cap": timedelta(seconds=1)},
        {"cap": timedelta.max},
    ],
    ids=["no base", "negative", "base above the cap", "cap below the base", "endless"],
)
def test_a_backoff_outside_of_its_range_is_refused(values: dict[str, timedelta]) -> None:
    with pytest.raises(OptionError, match="0 < base <= cap") as caught:
        Exponential(**values)
    assert isinstance(caught.value, JobqError)


@pytest.mark.parametrize("name", ["base", "cap"])
@pytest.mark.parametrize("value", [2, 2.0, "2s", None], ids=repr)
def test_a_backoff_of_another_type_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(OptionTypeError, match=f"{name} must be a timedelta"):
        Exponential(**{name: value})


def test_the_first_policy_that_fits_the_error_decides() -> None:
    policy = ByError({ConnectionError: exactly(1), OSError: exactly(2), ValueError: None}, otherwise=exactly(9))

    asked = [ConnectionResetError(), OSError(), UnicodeError(), KeyError("k")]

    assert [policy(1, error) for error in asked] == [
        timedelta(seconds=1),
        timedelta(seconds=2),
        None,
        timedelta(seconds=9),
    ]


def test_without_another_word_the_default_is_for_all_other_errors() -> None:
    assert ByError({}).otherwise == Exponential()


def test_policies_hear_how_many_failures_and_of_which_error() -> None:
    heard: list[Any] = []

    def policy(failures: int, error: BaseException) -> timedelta | None:
        heard.append((failures, error))
        return None

    assert delay_after(ByError({ValueError: policy}), 3, BOOM) is None
    assert delay_after(ByError({}, otherwise=policy), 4, BOOM) is None
    assert heard == [(3, BOOM), (4, BOOM)]


@pytest.mark.parametrize("delay", [None, timedelta(0), timedelta(seconds=7), LONGEST], ids=str)
def test_what_a_policy_says_is_done(delay: timedelta | None) -> None:
    assert delay_after(lambda failures, error: delay, 1, BOOM) == delay


def raising(failures: int, error: BaseException) -> timedelta | None:
    raise RuntimeError("a policy with a bug")


@pytest.mark.parametrize(
    "policy",
    [
        raising,
        lambda failures, error: timedelta(seconds=-1),
        lambda failures, error: timedelta.max,
        lambda failures, error: LONGEST + timedelta(microseconds=1),
        lambda failures, error: 5,
        lambda failures, error: float("nan"),
        lambda: timedelta(seconds=1),
    ],
    ids=["raises", "negative", "beyond all clocks", "over ten years", "a number", "nan", "wrong signature"],
)
def test_f13_a_policy_that_makes_no_sense_falls_back_to_the_default(policy: Callable[..., Any]) -> None:
    delay = delay_after(policy, 2, BOOM)

    assert delay is not None
    assert timedelta(seconds=2) <= delay <= timedelta(seconds=4)
