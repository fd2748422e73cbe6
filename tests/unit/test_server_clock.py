from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq.worker.server_clock import TOLERANCE, ServerClock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECONDS = st.floats(0, 3600)


def after(passed: float, said: float, *, delays: tuple[float, float] = (0.0, 0.0)) -> timedelta | None:
    """A second look, `passed` seconds later, that says `said` seconds more; `delays`: of the two answers."""
    clock = ServerClock()
    assert clock.was_set_forward(NOON, asked=100.0, answered=100.0 + delays[0]) is None
    asked = 100.0 + delays[0] + passed
    return clock.was_set_forward(NOON + timedelta(seconds=said), asked=asked, answered=asked + delays[1])


@given(SECONDS, SECONDS, SECONDS, st.floats(0, 1), st.floats(0, 1))
def test_a_clock_that_runs_as_ours_was_never_set_however_late_answers_are(
    passed: float, first: float, second: float, early: float, late: float
) -> None:
    """It is read at any moment between the question and the answer."""
    said = first * (1 - early) + passed + second * late
    assert after(passed, said, delays=(first, second)) is None


@given(SECONDS, st.floats(60, 1e8))
def test_what_it_is_ahead_is_told(passed: float, by: float) -> None:
    found = after(passed, passed + by)
    assert found is not None
    assert found.total_seconds() == pytest.approx(by, abs=1e-3)


@given(SECONDS, st.floats(0, 1e8))
def test_a_clock_that_was_set_back_or_stands_still_is_not_ahead(passed: float, by: float) -> None:
    assert after(passed, passed - by) is None


def test_a_little_ahead_is_nothing() -> None:
    assert after(9.0, 9.0 + TOLERANCE.total_seconds() * 0.9) is None


def test_a_clock_that_drifts_from_ours_was_not_set_however_far_two_looks_lie_apart() -> None:
    """As after an outage."""
    for hours in (1, 4, 24):
        assert after(hours * 3600.0, hours * 3600.0 * 1.0005) is None
