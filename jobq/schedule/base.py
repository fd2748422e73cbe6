"""What every schedule is: a name, a time zone, what becomes of ticks that nobody was there for, and its ticks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Literal, TypeAlias
from zoneinfo import ZoneInfo

from jobq import checks
from jobq.schedule.zones import zone_of

CatchUp: TypeAlias = Literal["once", "skip", "all"]
"""Of the ticks that passed while no worker was there: fire the last one, none, or one after the other."""

Form: TypeAlias = Literal["every", "cron", "when"]

MOST_REMEMBERED = 101  # of ticks that have passed: as many as are caught up at most, and the one before
LONGEST_LOOK = timedelta(days=366 * 50)


@dataclass(frozen=True, slots=True)
class Passed:
    """The ticks of a span of time: how many, and the last of them (at most MOST_REMEMBERED), ascending."""

    count: int
    last: tuple[datetime, ...]


@dataclass(frozen=True, slots=True)
class Schedule(ABC):
    """When a periodic job is due. Made by `every`, `cron` and `when`; the ticks are whole moments in UTC."""

    name: str | None
    zone: ZoneInfo
    catch_up: CatchUp

    form: ClassVar[Form]
    stride: ClassVar[timedelta | None] = timedelta(days=1)
    """How much time `passed` is asked about at once, so that it takes milliseconds; None: any."""

    def __post_init__(self) -> None:
        if self.name is not None:
            object.__setattr__(self, "name", checks.name("name", self.name))
        checks.one_of("catch_up", self.catch_up, ("once", "skip", "all"))

    @property
    @abstractmethod
    def expression(self) -> str:
        """As it stands in the database; `schedule_of` reads it back."""

    @abstractmethod
    def explain(self) -> str:
        """In words, without the time zone."""

    @abstractmethod
    def next_after(self, moment: datetime, until: datetime | None = None) -> datetime | None:
        """The first tick after an aware moment and not after `until`; None, when there is none."""

    def upcoming(self, moment: datetime, until: datetime | None = None) -> Iterator[datetime]:
        """The ticks after a moment, ascending."""
        following = partial(self.next_after, until=until)
        tick = following(moment)
        while tick is not None:
            yield tick
            tick = following(tick)

    def next_runs(self, moment: datetime, number: int = 5) -> tuple[datetime, ...]:
        """The next ticks after a moment, in the schedule's own time zone."""
        return tuple(tick.astimezone(self.zone) for tick in islice(self.upcoming(moment), number))

    def passed(self, after: datetime, until: datetime) -> Passed:
        """The ticks after one moment, and not after the other."""
        count = 0
        last: deque[datetime] = deque(maxlen=MOST_REMEMBERED)
        for tick in self.upcoming(after, until):
            count += 1
            last.append(tick)
        return Passed(count, tuple(last))


def options(name: str | None, tz: Any, catch_up: CatchUp) -> dict[str, Any]:
    """The fields that all schedules have, checked. Raises: OptionError, OptionTypeError."""
    return {"name": name, "zone": zone_of("tz", tz), "catch_up": catch_up}
