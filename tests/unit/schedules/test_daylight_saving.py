"""Schedules on the days when clocks are changed, judged by a walk through every minute of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise, takewhile

import pytest
from cronsim import CronSim
from oracle import HOUR, MINUTE, Switch, Walk, alike, all_switches, around, close_to, switches_of

import jobq
from jobq.schedule import Schedule

ZONES = [
    "America/New_York",  # an hour, at two
    "Africa/Cairo",  # the gap begins at midnight
    "America/Havana",  # and here the hour after midnight comes twice
    "America/Nuuk",  # the gap ends at midnight
    "Australia/Lord_Howe",  # half an hour
    "Antarctica/Troll",  # two hours
]
SHOWN: dict[str, Callable[[datetime], bool]] = {
    "*/15 * * * *": lambda t: t.minute % 15 == 0,
    "5 * * * *": lambda t: t.minute == 5,
    "0 */3 * * *": lambda t: (t.hour % 3, t.minute) == (0, 0),
    "30 */6 * * *": lambda t: (t.hour % 6, t.minute) == (0, 30),
    "*/20 1-3 * * *": lambda t: 1 <= t.hour <= 3 and t.minute % 20 == 0,
}


def ticks(schedule: Schedule, start: datetime, end: datetime) -> list[datetime]:
    """From `start` to before `end`."""
    return list(takewhile(lambda tick: tick < end, schedule.upcoming(start - MINUTE)))


def of_whole_days(walk: Walk, found: list[datetime]) -> list[datetime]:
    days = [*walk.days.values()]
    first, last = days[0][0][0], days[-1][-1][0]
    return [tick for tick in found if first <= tick <= last]


def assert_lawful(switch: Switch, times: list[time], every_minute: Walk) -> None:
    walk = around(switch)
    for at in times:
        daily = jobq.cron(f"{at.minute} {at.hour} * * *", tz=switch.zone)
        assert of_whole_days(walk, ticks(daily, walk.start, walk.end)) == walk.once_a_day(at), (str(switch), at)
    for expression, fits in SHOWN.items():
        shown = jobq.cron(expression, tz=switch.zone)
        assert ticks(shown, walk.start, walk.end) == walk.shows(fits), (str(switch), expression)
    minutely = jobq.cron("* * * * *", tz=switch.zone)
    assert ticks(minutely, every_minute.start, every_minute.end) == every_minute.shows(lambda t: True), str(switch)


def times_near(switch: Switch, step: timedelta) -> list[time]:
    """For three hours before and after what the clocks showed, and some of the rest of the day."""
    shown = switch.moment + switch.before
    near = [(shown + n * step).time() for n in range(-(3 * HOUR // step), 3 * HOUR // step + 1)]
    return [*near, *(time(hour, minute) for hour in (0, 6, 12, 23) for minute in (0, 59))]


@pytest.mark.parametrize("zone", ZONES)
def test_f39_a_daily_job_is_due_once_on_each_local_date_and_steps_keep_real_time(zone: str) -> None:
    switches = alike(list(switches_of(zone)), by_moment=False)

    assert switches
    for switch in switches:
        assert_lawful(switch, times_near(switch, timedelta(minutes=45)), around(switch))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_f39_so_it_is_in_every_zone_at_every_switch_of_2026_to_2030() -> None:
    switches = all_switches()

    assert {*ZONES} <= {switch.zone for switch in switches}
    for switch in alike(switches, by_moment=True):
        assert_lawful(switch, times_near(switch, timedelta(minutes=10)), close_to(switch))


@pytest.mark.parametrize("zone", ZONES)
def test_quarters_of_an_hour_are_a_quarter_of_an_hour_apart(zone: str) -> None:
    for switch in alike(list(switches_of(zone)), by_moment=False):
        found = ticks(jobq.cron("*/15 * * * *", tz=zone), switch.moment - HOUR, switch.moment + HOUR)

        assert {after - before for before, after in pairwise(found)} == {15 * MINUTE}


@pytest.mark.parametrize("zone", ZONES)
def test_several_times_of_day_are_those_of_each(zone: str) -> None:
    """So nothing is lost or doubled where two of them fall on one moment."""
    for switch in alike(list(switches_of(zone)), by_moment=False):
        start, end = switch.moment - 30 * HOUR, switch.moment + 30 * HOUR
        single = [jobq.cron(f"{minute} {hour} * * *", tz=zone) for hour in (0, 1, 2, 23) for minute in (0, 20, 45)]

        found = ticks(jobq.cron("0,20,45 0-2,23 * * *", tz=zone), start, end)

        assert found == sorted({tick for each in single for tick in ticks(each, start, end)})


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        pytest.param(
            "30 1 * * *",
            "America/New_York",
            utc(2026, 11, 1),
            [utc(2026, 11, 1, 5, 30), utc(2026, 11, 2, 6, 30)],
            id="shown twice: the first time",
        ),
        pytest.param(
            "30 2 * * *",
            "America/New_York",
            utc(2026, 3, 8),
            [utc(2026, 3, 8, 7, 0), utc(2026, 3, 9, 6, 30)],
            id="in the gap: when it ends",
        ),
        pytest.param(
            "*/30 * * * *",
            "America/New_York",
            utc(2026, 11, 1, 4, 15),
            [utc(2026, 11, 1, 4, 30) + n * 30 * MINUTE for n in range(6)],
            id="steps: real time",
        ),
        pytest.param(
            "0 0 * * *",
            "Africa/Cairo",
            utc(2026, 4, 23),
            [utc(2026, 4, 23, 22), utc(2026, 4, 24, 21)],
            id="midnight in the gap",
        ),
        pytest.param(
            "30 23 * * *",
            "America/Nuuk",
            utc(2026, 3, 28, 12),
            [utc(2026, 3, 29, 0, 59), utc(2026, 3, 30, 0, 30)],
            id="in a gap that ends with the date: the minute before it",
        ),
        pytest.param(
            "0 12 * * *",
            "Pacific/Apia",
            utc(2011, 12, 29),
            [utc(2011, 12, 29, 22), utc(2011, 12, 30, 22)],
            id="a date that is left out",
        ),
        pytest.param(
            "0 12 * * *",
            "Pacific/Kwajalein",
            utc(1969, 9, 29, 12),
            [utc(1969, 9, 30, 1), utc(1969, 10, 2, 0)],
            id="hours that come twice over two dates",
        ),
    ],
)
def test_f39_some_switches_by_hand(expression: str, zone: str, after: datetime, expected: list[datetime]) -> None:
    upcoming = jobq.cron(expression, tz=zone).upcoming(after)

    assert [next(upcoming) for _ in expected] == expected


def test_where_the_library_alone_would_lose_or_double_a_tick() -> None:
    """What is mended here. Should it be mended there, the thin layer on top of it can go."""
    nuuk = CronSim("30 23 * * *", utc(2026, 3, 28, 12).astimezone(jobq.cron("@daily", tz="America/Nuuk").zone))
    assert [next(nuuk).date().day for _ in range(2)] == [29, 29]

    howe = jobq.cron("0 */3 * * *", tz="Australia/Lord_Howe")
    library = CronSim("0 */3 * * *", utc(2026, 4, 4, 10).astimezone(howe.zone))
    assert {next(library).astimezone(UTC) for _ in range(6)} != set(howe.next_runs(utc(2026, 4, 4, 10), 6))
