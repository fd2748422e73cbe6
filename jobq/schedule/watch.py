"""What one process has seen of a schedule's ticks since the last settled one: each minute is looked at once."""

from __future__ import annotations

from datetime import datetime, timedelta

from jobq.schedule.base import MOST_REMEMBERED, Passed, Schedule


class Watch:
    """Looks at time in strides, so that a year of minutes does not stop the loop that it is done in."""

    def __init__(self, schedule: Schedule, settled: datetime) -> None:
        self._schedule = schedule
        self._begin(settled)

    def _begin(self, settled: datetime) -> None:
        self._settled = self._looked = settled
        self._passed = Passed(0, ())

    @property
    def passed(self) -> Passed:
        """The ticks seen since the last settled one."""
        return self._passed

    @property
    def looked(self) -> datetime:
        """Up to which moment they are known."""
        return self._looked

    def look(self, settled: datetime, now: datetime) -> bool:
        """Go a stride on towards `now`; whether it is reached. `settled`: the last tick that has its fate."""
        if settled != self._settled or now < self._looked:  # a clock was stepped back
            self._begin(settled)
        stride = self._schedule.stride
        until = now if stride is None else min(now, self._looked + stride)
        if until > self._looked:
            self._add(self._schedule.passed(self._looked, until))
            self._looked = until
        return self._looked >= now

    def next_tick(self, within: timedelta) -> datetime | None:
        """The first tick after what has been looked at, where there is one within that time."""
        return self._schedule.next_after(self._looked, self._looked + within)

    def _add(self, found: Passed) -> None:
        last = (*self._passed.last, *found.last)
        self._passed = Passed(self._passed.count + found.count, last[-MOST_REMEMBERED:])
