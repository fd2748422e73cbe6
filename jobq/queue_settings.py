"""What code says of a queue: a default, that what is set in the database overrules."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta

from jobq import checks
from jobq.errors import OptionError, OptionTypeError
from jobq.pausing import PauseOn
from jobq.throttle import Throttle

HIGHEST_WEIGHT = 1000
MOST_SLOTS = 1000
MOST_THREADS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """What `app.queue` was told, checked. See there."""

    weight: int = 1
    fifo: bool = False
    concurrency: int | None = None
    threads: int | None = None
    throttle: Throttle | None = None
    timeout: timedelta | None = None
    pause_on: PauseOn | None = None

    def __post_init__(self) -> None:
        checks.whole("weight", self.weight, 1, HIGHEST_WEIGHT)
        checks.typed("fifo", self.fifo, bool, "a bool")
        if self.concurrency is not None:
            checks.whole("concurrency", self.concurrency, 1, MOST_SLOTS)
        if self.threads is not None:
            checks.whole("threads", self.threads, 1, MOST_THREADS)
        if self.timeout is not None:
            checks.span("timeout", self.timeout)
        for name in ("throttle", "pause_on"):
            if (value := getattr(self, name)) is not None and not callable(value):
                raise OptionTypeError(f"{name}: expected a callable, got {checks.show(value)}")
        if self.fifo and self.concurrency is not None:
            raise OptionError("fifo and concurrency: fifo is one job at a time already, give one of them")
        if self.throttle is not None and not self.is_limited:
            raise OptionError(
                "throttle: without fifo or concurrency each worker would keep the pace by itself, give one"
            )

    @property
    def is_limited(self) -> bool:
        return self.fifo or self.concurrency is not None

    def differs_from(self, other: QueueSettings) -> str | None:
        """The first setting that is another one there, with both values; None when all are the same."""
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if mine != theirs:
                return f"{each.name} {checks.show(mine)} and {checks.show(theirs)}"
        return None


def said_of(weight: int | None, fifo: bool | None, concurrency: int | None) -> str:
    """Weight and limit in words: `weight 3, fifo`, `weight 1, concurrency 4`, `weight 1, no limit`."""
    limit = "fifo" if fifo else "no limit" if concurrency is None else f"concurrency {concurrency}"
    return f"weight {weight or 1}, {limit}"
