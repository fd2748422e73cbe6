"""Wall clocks: what a time of day in a zone means on the days when its clocks are changed.

A change is the first moment of another offset. Forward it leaves a gap of times that no clock shows, back it shows
some twice; most are of an hour, Lord Howe's of half an hour, a move over the date line's of a day.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

PROBE = timedelta(days=1)  # no zone changes twice within a day
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def wall_of(moment: datetime, zone: ZoneInfo) -> datetime:
    """What the clocks show: a naive time."""
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def offset_at(moment: datetime, zone: ZoneInfo) -> timedelta:
    """How far the clocks are before UTC."""
    return moment.astimezone(zone).utcoffset() or timedelta(0)


def moment_of(wall: datetime, zone: ZoneInfo) -> datetime | None:
    """The one moment that a time of day stands for, so that what is due once a day is due once on each local date.

    Shown twice: the first time. In a gap: the end of the gap, or, where another date has begun by then, the last
    minute before it. None: the whole date is left out.
    """
    aware = wall.replace(tzinfo=zone, fold=0)
    moment = aware.astimezone(UTC)
    if wall_of(moment, zone) == wall:
        return moment
    change = _bisect(aware.replace(fold=1).astimezone(UTC), moment, zone)
    for candidate in (change, change - MINUTE):
        if wall_of(candidate, zone).date() == wall.date():
            return candidate
    return None


def next_change(after: datetime, until: datetime, zone: ZoneInfo) -> datetime | None:
    """The first change after a moment and not after another; both of whole seconds."""
    before, offset = after, offset_at(after, zone)
    while before < until:
        probe = min(before + PROBE, until)
        if offset_at(probe, zone) != offset:
            return _bisect(before, probe, zone)
        before = probe
    return None


def _bisect(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The change between a moment before it and one after it."""
    offset = offset_at(before, zone)
    while after - before > SECOND:
        middle = before + (after - before) // 2
        middle = max(middle.replace(microsecond=0), before + SECOND)
        if offset_at(middle, zone) == offset:
            before = middle
        else:
            after = middle
    return after
