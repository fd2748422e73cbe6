"""`when`: the minutes that a function says yes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar, TypeAlias
from zoneinfo import ZoneInfo

from jobq import checks
from jobq.errors import OptionTypeError
from jobq.schedule.base import CatchUp, Form, Schedule, options

Predicate: TypeAlias = Callable[[datetime], object]

MINUTE = timedelta(minutes=1)
LOOK_AHEAD = timedelta(days=366)  # half a million calls


def when(
    predicate: Predicate, /, *, name: str | None = None, tz: str | ZoneInfo = "UTC", catch_up: CatchUp = "once"
) -> When:
    """A schedule of the minutes that a predicate is true for: `when(lambda t: t.minute % 15 == 0)`.

    It is called with the aware minute in UTC, or in `tz`, and must depend on that alone: minutes that have passed are
    asked about too, and some twice. What it raises is reported; that minute is none. `catch_up`: see `cron`.
    """
    return When(**options(name, tz, catch_up), predicate=predicate)


@dataclass(frozen=True, slots=True)
class When(Schedule):
    """Minutes chosen by a function."""

    predicate: Predicate

    form: ClassVar[Form] = "when"

    def __post_init__(self) -> None:
        Schedule.__post_init__(self)  # not super(): a dataclass with slots is made anew
        if not callable(self.predicate):
            raise OptionTypeError(f"when: expected a predicate of the minute, got {checks.show(self.predicate)}")

    @property
    def expression(self) -> str:
        """Where the predicate is, for people: another process cannot call it."""
        module = getattr(self.predicate, "__module__", None) or type(self.predicate).__module__
        name = getattr(self.predicate, "__qualname__", None) or type(self.predicate).__qualname__
        return f"{module}.{name}"[:200]

    def explain(self) -> str:
        return f"predicate {self.expression}"

    def next_after(self, moment: datetime, until: datetime | None = None) -> datetime | None:
        """Without `until` it looks a year ahead."""
        last = moment + LOOK_AHEAD if until is None else until
        minute = moment.astimezone(UTC).replace(second=0, microsecond=0) + MINUTE
        while minute <= last:
            if self.predicate(minute.astimezone(self.zone)):
                return minute
            minute += MINUTE
        return None
