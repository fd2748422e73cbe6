"""What the clocks of a zone show, minute by minute of UTC through zoneinfo: what schedules are judged by.

It knows nothing of jobq and nothing of cronsim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from zoneinfo import ZoneInfo, available_timezones

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
QUARTER = timedelta(hours=6)
FIRST, LAST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)
BEFORE, AFTER = timedelta(days=1.5), timedelta(days=2.5)  # how much of the time around a switch is walked


@dataclass(frozen=True)
class Switch:
    """The clocks of a zone are changed: `moment` is the first minute of the new offset."""

    zone: str
    moment: datetime
    before: timedelta
    after: timedelta

    @property
    def shift(self) -> timedelta:
        return self.after - self.before

    @property
    def shown(self) -> time:
        """What the clocks showed when they were changed."""
        return (self.moment + self.before).time()

    def __str__(self) -> str:
        return f"{self.zone} {self.moment:%Y-%m-%d} {self.shift / HOUR:+g}h at {self.shown:%H:%M}"


class Walk:
    """Every minute from `start` to before `end`, and what the clocks show then."""

    def __init__(self, zone: str, start: datetime, end: datetime) -> None:
        self.start, self.end = start, end
        self._zone = ZoneInfo(zone)

    @cached_property
    def minutes(self) -> list[tuple[datetime, datetime]]:
        """(UTC, naive local time)"""
        return [(moment, moment.astimezone(self._zone).replace(tzinfo=None, fold=0)) for moment in self._moments()]

    @cached_property
    def days(self) -> dict[date, list[tuple[datetime, time]]]:
        """The minutes by their local dates; the first and the last date, which may be cut, are left out."""
        days: dict[date, list[tuple[datetime, time]]] = {}
        for moment, shown in self.minutes:
            days.setdefault(shown.date(), []).append((moment, shown.time()))
        return dict(list(days.items())[1:-1])

    def shows(self, fits: Callable[[datetime], bool]) -> list[datetime]:
        """The minutes whose local time fits."""
        return [moment for moment, shown in self.minutes if fits(shown)]

    def once_a_day(self, wanted: time) -> list[datetime]:
        """For each local date its first minute that shows this time; if it has none the next one, or else its last."""
        return [_minute_of(minutes, wanted) for minutes in self.days.values()]

    def _moments(self) -> Iterator[datetime]:
        moment = self.start
        while moment < self.end:
            yield moment
            moment += MINUTE


def _minute_of(minutes: list[tuple[datetime, time]], wanted: time) -> datetime:
    exact = next((moment for moment, shown in minutes if shown == wanted), None)
    later = next((moment for moment, shown in minutes if shown > wanted), minutes[-1][0])
    return exact or later


def around(switch: Switch) -> Walk:
    return Walk(switch.zone, switch.moment - BEFORE, switch.moment + AFTER)


def close_to(switch: Switch) -> Walk:
    """Half a day, the switch in its middle: for what is due so often that four days of it take long to compute."""
    return Walk(switch.zone, switch.moment - QUARTER, switch.moment + QUARTER)


def switches_of(zone: str) -> Iterator[Switch]:
    """All of 2026 to 2030, found by quarters of a day and then by the minute."""
    tz = ZoneInfo(zone)

    def offset(moment: datetime) -> timedelta:
        return moment.astimezone(tz).utcoffset() or timedelta(0)

    begin, last = FIRST, offset(FIRST)
    while begin < LAST:
        if (now := offset(begin + QUARTER)) != last:
            minutes = (begin + n * MINUTE for n in range(1, 361))
            yield Switch(zone, next(each for each in minutes if offset(each) != last), last, now)
        begin, last = begin + QUARTER, now


def all_switches() -> list[Switch]:
    return [switch for zone in sorted(available_timezones()) for switch in switches_of(zone)]


def alike(switches: list[Switch], *, by_moment: bool) -> list[Switch]:
    """One of those that look the same to whoever looks at the days around them; or of those alike on any day."""
    chosen: dict[object, Switch] = {}
    for each in switches:
        chosen.setdefault((each.moment if by_moment else each.shown, each.before, each.after), each)
    return list(chosen.values())
