"""What an expression, a span, a predicate or a zone may be, and what they mean."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jobq
from jobq.schedule import Schedule, schedule_of

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
FIELDS = "five fields (minute hour day-of-month month day-of-week), or one of @yearly, @annually,"


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        pytest.param("0 0 30 2 *", "cron: '0 0 30 2 *': bad day-of-month", id="30 February"),
        pytest.param("0 0 31 4,6,9,11 *", "cron: '0 0 31 4,6,9,11 *': bad day-of-month", id="31 of short months"),
        pytest.param("60 * * * *", "cron: '60 * * * *': bad minute", id="minute 60"),
        pytest.param("* * * *", f"cron: '* * * *': {FIELDS}", id="four fields"),
        pytest.param("0 * * * * *", f"cron: '0 * * * * *': {FIELDS}", id="six fields"),
        pytest.param("*/0 * * * *", "cron: '*/0 * * * *': bad minute", id="a step of nothing"),
        pytest.param("", f"cron: '': {FIELDS}", id="nothing"),
        pytest.param("@reboot", f"cron: '@reboot': {FIELDS}", id="an alias that is none"),
        pytest.param("0 " * 200, "cron: at most 256 characters", id="too long"),
        pytest.param("٣ * * * *", "cron: '٣ * * * *': bad minute", id="digits of another script"),
    ],
)
def test_f40_what_can_never_be_due_is_refused_at_registration(expression: str, said: str) -> None:
    begun = time.monotonic()

    with pytest.raises(jobq.OptionError) as caught:
        jobq.cron(expression)

    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)
    assert time.monotonic() - begun < 1


@pytest.mark.parametrize("zone", ["Mars/Base", "", "../UTC", "/etc/localtime", "Europe", "a\0b", "\udc80"])
def test_f40_a_zone_that_is_not_there_is_refused_at_registration(zone: str) -> None:
    with pytest.raises(jobq.OptionError, match=r"^tz: "):
        jobq.cron("@daily", tz=zone)


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        pytest.param("0 0 29 2 *", utc(2026, 4, 4), [utc(2028, 2, 29), utc(2032, 2, 29)], id="29 February"),
        pytest.param(
            "0 0 */7 * *",
            utc(2026, 1, 20),
            [utc(2026, 1, 22), utc(2026, 1, 29), utc(2026, 2, 1), utc(2026, 2, 8)],
            id="steps begin anew each month",
        ),
        pytest.param("0 0 13 * 5", utc(2026, 1, 10), [utc(2026, 1, 13), utc(2026, 1, 16)], id="the 13th or Friday"),
        pytest.param("0 0 */2 * 5", utc(2026, 1, 1), [utc(2026, 1, 9), utc(2026, 1, 23)], id="odd days and Friday"),
        pytest.param("0 0 * * 7", utc(2026, 1, 1), [utc(2026, 1, 4), utc(2026, 1, 11)], id="7 is Sunday as 0"),
        pytest.param("0 12 L * *", utc(2026, 2, 1), [utc(2026, 2, 28, 12), utc(2026, 3, 31, 12)], id="the last day"),
        pytest.param("0 9 * jan MON#1", utc(2026, 1, 1), [utc(2026, 1, 5, 9), utc(2027, 1, 4, 9)], id="names"),
        pytest.param(" 5   4 * *   * ", utc(2026, 1, 1), [utc(2026, 1, 1, 4, 5)], id="spaces"),
        pytest.param("@daily", utc(2026, 1, 1), [utc(2026, 1, 2)], id="daily"),
        pytest.param("@HOURLY", utc(2026, 1, 1), [utc(2026, 1, 1, 1)], id="hourly"),
        pytest.param("@weekly", utc(2026, 1, 1), [utc(2026, 1, 4)], id="weekly"),
        pytest.param("@monthly", utc(2026, 1, 1), [utc(2026, 2, 1)], id="monthly"),
        pytest.param("@yearly", utc(2026, 1, 1), [utc(2027, 1, 1)], id="yearly"),
    ],
)
def test_f40_step_and_day_rules(expression: str, after: datetime, expected: list[datetime]) -> None:
    upcoming = jobq.cron(expression).upcoming(after)

    assert [next(upcoming) for _ in expected] == expected


def test_a_date_that_is_years_off_is_found_at_once_in_any_zone() -> None:
    begun = time.monotonic()

    tick = jobq.cron("* 0 29 2 *", tz="Europe/Paris").next_after(utc(2028, 3, 1))

    assert tick == utc(2032, 2, 28, 23)
    assert time.monotonic() - begun < 1


def test_ticks_are_those_after_the_moment_whatever_its_zone() -> None:
    schedule = jobq.cron("0 * * * *", tz="Europe/Paris")
    moment = datetime(2026, 7, 1, 14, 0, tzinfo=timezone(timedelta(hours=5)))

    assert schedule.next_after(moment) == utc(2026, 7, 1, 10)
    assert schedule.next_after(moment - timedelta(microseconds=1)) == utc(2026, 7, 1, 9)
    assert schedule.next_after(moment, until=utc(2026, 7, 1, 9, 59)) is None


def test_next_runs_are_told_in_the_zone_of_the_schedule() -> None:
    first, second = jobq.cron("30 6 * * *", tz="Asia/Kathmandu").next_runs(utc(2026, 1, 1), 2)

    assert first.isoformat() == "2026-01-01T06:30:00+05:45"
    assert second - first == DAY


@pytest.mark.parametrize(
    ("span", "expression", "said"),
    [
        pytest.param(timedelta(seconds=1), "1", "every second", id="second"),
        pytest.param(timedelta(seconds=90), "90", "every 90 seconds", id="seconds"),
        pytest.param(timedelta(minutes=90), "5400", "every 90 minutes", id="minutes"),
        pytest.param(timedelta(hours=24), "86400", "every day", id="day"),
        pytest.param(timedelta(weeks=1), "604800", "every 7 days", id="week"),
        pytest.param(timedelta(seconds=1.5), "1.5", "every 1.5 seconds", id="broken"),
        pytest.param(timedelta(seconds=1, microseconds=1), "1.000001", "every 1.000001 seconds", id="odd"),
    ],
)
def test_a_span_is_written_down_and_read_back(span: timedelta, expression: str, said: str) -> None:
    schedule = jobq.every(span)

    assert (schedule.expression, schedule.explain()) == (expression, said)
    assert schedule_of("every", expression, "UTC") == schedule


def test_a_cron_expression_is_written_down_read_back_and_explained() -> None:
    schedule = jobq.cron("30  */6 * * *", tz=ZoneInfo("Europe/Paris"))

    assert schedule.expression == "30 */6 * * *"
    assert schedule.explain() == "At minute 30 past every sixth hour"
    assert schedule_of("cron", "30 */6 * * *", "Europe/Paris") == schedule


@pytest.mark.parametrize(
    ("form", "expression", "tz"),
    [
        ("when", "shop.jobs.quarter", "UTC"),
        ("cron", "0 0 30 2 *", "UTC"),
        ("cron", "@daily", "Mars/Base"),
        ("every", "x", "UTC"),
        ("every", "nan", "UTC"),
        ("every", "1e999", "UTC"),
        ("phase", "full", "UTC"),
    ],
)
def test_what_a_row_holds_that_cannot_be_read_is_no_error(form: str, expression: str, tz: str) -> None:
    assert schedule_of(form, expression, tz) is None


def test_every_day_is_midnight_utc_and_every_week_thursday() -> None:
    assert jobq.every(DAY).next_after(utc(2026, 1, 1, 5)) == utc(2026, 1, 2)
    assert jobq.every(7 * DAY).next_after(utc(2026, 1, 2)) == utc(2026, 1, 8)


def test_a_predicate_is_asked_about_the_minute_in_its_zone() -> None:
    asked: list[datetime] = []

    def at_six(minute: datetime) -> bool:
        asked.append(minute)
        return (minute.hour, minute.minute) == (6, 0)

    schedule = jobq.when(at_six, tz="Asia/Kathmandu")

    assert schedule.next_after(utc(2026, 1, 1, 0, 13, 30)) == utc(2026, 1, 1, 0, 15)
    assert [minute.isoformat() for minute in asked] == ["2026-01-01T05:59:00+05:45", "2026-01-01T06:00:00+05:45"]
    assert schedule.explain().endswith("at_six")


def test_a_predicate_that_is_never_true_is_looked_for_a_year() -> None:
    assert jobq.when(lambda t: False).next_after(utc(2026, 1, 1)) is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        pytest.param(lambda: jobq.every(5), "every: expected a timedelta, got int 5", id="span"),
        pytest.param(lambda: jobq.cron(5), "cron: expected a str, got int 5", id="expression"),
        pytest.param(lambda: jobq.when("x"), "when: expected a predicate of the minute, got 'x'", id="predicate"),
        pytest.param(lambda: jobq.cron("@daily", tz=UTC), "tz: expected the name of a time zone", id="zone"),
        pytest.param(lambda: jobq.cron("@daily", name=5), "name: expected a str, got int 5", id="name"),
    ],
)
def test_a_wrong_type_is_a_type_error(make: Any, said: str) -> None:
    with pytest.raises(jobq.OptionTypeError) as caught:
        make()

    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        pytest.param(lambda: jobq.every(timedelta(0)), "every: more than 0", id="no time"),
        pytest.param(lambda: jobq.every(timedelta(seconds=0.5)), "every: 1 s or more, got 0:00:00.500000", id="short"),
        pytest.param(lambda: jobq.cron("@daily", name="a b"), "name: 1 to 63 of the letters", id="name"),
        pytest.param(lambda: jobq.cron("@daily", catch_up="most"), "catch_up: 'once' or 'skip' or 'all'", id="word"),
    ],
)
def test_a_value_out_of_range_is_a_value_error(make: Any, said: str) -> None:
    with pytest.raises(jobq.OptionError) as caught:
        make()

    assert str(caught.value).startswith(said)


@given(st.text(st.sampled_from("0123456789*/,-LW#@ MONFEB\t~"), max_size=30) | st.text(max_size=300))
def test_f40_any_text_is_a_schedule_or_an_option_error(text: str) -> None:
    try:
        schedule: Schedule = jobq.cron(text)
    except jobq.OptionError:
        return
    assert schedule.next_after(utc(2026, 1, 1)) is not None
    assert schedule.explain()
