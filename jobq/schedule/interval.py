"""`every`: multiples of a span since 1970-01-01 UTC, so that no restart and no deploy moves them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar
from zoneinfo import ZoneInfo

from jobq import checks
from jobq.errors import OptionError
from jobq.schedule.base import MOST_REMEMBERED, CatchUp, Form, Passed, Schedule, options

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SHORTEST = timedelta(seconds=1)
UNITS = {"day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1)}


def every(
    span: timedelta, /, *, name: str | None = None, tz: str | ZoneInfo = "UTC", catch_up: CatchUp = "once"
) -> Every:
    """A schedule of equal steps: the multiples of `span` (1 s or more) since 1970-01-01 00:00 UTC.

    Every 24 hours is midnight UTC, every 7 days Thursday. `tz` is where its times are shown and changes none of them:
    for a time of day in a zone there is `cron`. `catch_up`: see `cron`. Raises: OptionError, OptionTypeError.
    """
    return Every(**options(name, tz, catch_up), span=span)


@dataclass(frozen=True, slots=True)
class Every(Schedule):
    """Equal steps of real time."""

    span: timedelta

    form: ClassVar[Form] = "every"
    stride: ClassVar[timedelta | None] = None

    def __post_init__(self) -> None:
        Schedule.__post_init__(self)  # not super(): a dataclass with slots is made anew
        if checks.span("every", self.span) < SHORTEST:
            raise OptionError(f"every: 1 s or more, got {self.span}")

    @property
    def expression(self) -> str:
        """The span in seconds."""
        return f"{self.span / timedelta(seconds=1):.6f}".rstrip("0").rstrip(".")

    def explain(self) -> str:
        for unit, length in UNITS.items():
            if not self.span % length:
                return _counted(self.span // length, unit)
        return "every second" if self.expression == "1" else f"every {self.expression} seconds"

    def next_after(self, moment: datetime, until: datetime | None = None) -> datetime | None:
        tick = EPOCH + ((moment - EPOCH) // self.span + 1) * self.span
        return tick if until is None or tick <= until else None

    def passed(self, after: datetime, until: datetime) -> Passed:
        """As that of all schedules, without walking through them."""
        first, last = (after - EPOCH) // self.span + 1, (until - EPOCH) // self.span
        numbers = range(max(first, last - MOST_REMEMBERED + 1), last + 1)
        return Passed(max(0, last - first + 1), tuple(EPOCH + n * self.span for n in numbers))


def _counted(number: int, unit: str) -> str:
    return f"every {unit}" if number == 1 else f"every {number} {unit}s"
