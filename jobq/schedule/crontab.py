"""`cron`: cronsim reads the expression and walks through naive times; what clocks make of them is decided here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar
from zoneinfo import ZoneInfo

from jobq import checks
from jobq.errors import OptionError
from jobq.schedule.base import LONGEST_LOOK, CatchUp, Form, Schedule, options
from jobq.schedule.walltime import moment_of, next_change, offset_at, wall_of

if TYPE_CHECKING:
    from cronsim import CronSim

LONGEST = 256  # characters
FIELDS = "minute hour day-of-month month day-of-week"
ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
SOME_DAY = datetime(2000, 1, 1)  # a wall clock's time


def cron(
    expression: str, /, *, name: str | None = None, tz: str | ZoneInfo = "UTC", catch_up: CatchUp = "once"
) -> Cron:
    """A schedule as in crontab: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly ...

    By the clocks of `tz`. A fixed time of day is due once on each of its dates, also when the clocks are changed; with
    a `*` in front of minute or hour it is due whenever the clocks show such a time. Of ticks that passed while no
    worker was there `catch_up` fires the last one ("once"), none older than a minute ("skip"), or one after the other,
    at most 100 ("all"). Raises: OptionError, also for dates that never come; OptionTypeError.
    """
    checks.typed("cron", expression, str, "a str")
    return Cron(**options(name, tz, catch_up), text=" ".join(expression[: LONGEST + 1].split()))


@dataclass(frozen=True, slots=True)
class Cron(Schedule):
    """Times of day and dates, by the clocks of a zone."""

    text: str

    form: ClassVar[Form] = "cron"

    def __post_init__(self) -> None:
        Schedule.__post_init__(self)  # not super(): a dataclass with slots is made anew
        if len(self.text) > LONGEST:
            raise OptionError(f"cron: at most {LONGEST} characters")
        if self._next_wall(SOME_DAY) is None:
            raise OptionError(f"cron: {self.text!r} has no date within fifty years")

    @property
    def expression(self) -> str:
        return self.text

    def explain(self) -> str:
        return self._walker(SOME_DAY).explain()

    def next_after(self, moment: datetime, until: datetime | None = None) -> datetime | None:
        start = moment.astimezone(UTC).replace(microsecond=0)
        last = min(until or checks.LATEST, start + LONGEST_LOOK)
        tick = self._next_fixed(start, last) if self._is_fixed else self._next_shown(start, last)
        return tick if tick is not None and tick <= last else None

    @property
    def _is_fixed(self) -> bool:
        """Debian's rule, and cronsim's: a time of day, unless minute or hour begins with a star."""
        minute, hour = self._fields.split()[:2]
        return not minute.startswith("*") and not hour.startswith("*")

    @property
    def _fields(self) -> str:
        return ALIASES.get(self.text.lower(), self.text)

    def _next_fixed(self, start: datetime, last: datetime) -> datetime | None:
        wall = self._next_wall(wall_of(start, self.zone))
        while wall is not None:
            moment = moment_of(wall, self.zone)
            if moment is not None and moment > start:
                return moment
            wall = self._next_wall(wall)
        return None

    def _next_shown(self, start: datetime, last: datetime) -> datetime | None:
        """The next moment at which the clocks show such a time: between two changes they run as UTC does."""
        shown = wall_of(start, self.zone)
        while (wall := self._next_wall(shown)) is not None:
            moment = wall.replace(tzinfo=UTC) - offset_at(start, self.zone)
            change = next_change(start, min(moment, last), self.zone)
            if change is None:
                return moment
            start, shown = change, wall_of(change, self.zone) - timedelta(seconds=1)
        return None

    def _next_wall(self, wall: datetime) -> datetime | None:
        """The next time after this one that fits the expression, on a clock that nobody ever changes."""
        return next(self._walker(wall), None)

    def _walker(self, wall: datetime) -> CronSim:
        from cronsim import CronSim, CronSimError  # not before somebody has a cron schedule

        if len(self._fields.split()) != 5:
            known = ", ".join(ALIASES)
            raise OptionError(f"cron: {checks.show(self.text)}: five fields ({FIELDS}), or one of {known}")
        try:
            return CronSim(self._fields, wall)
        except CronSimError as error:
            problem = str(error)[:1].lower() + str(error)[1:]
            raise OptionError(f"cron: {checks.show(self.text)}: {problem}") from error
