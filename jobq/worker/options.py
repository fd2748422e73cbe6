"""What a worker can be told, validated together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from jobq.errors import OptionError, OptionTypeError
from jobq.tables import NAME_RULE

LONGEST_SPAN = timedelta(days=1)
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """`queues` None: every queue with work of a kind that the worker knows. Spans are above 0, at most a day.

    stall: how long the event loop may stand still before the worker ends itself; None: the longer of lease and 5 min.
    """

    queues: Sequence[str] | None = None
    concurrency: int = 20
    lease: timedelta = timedelta(seconds=60)
    grace: timedelta = timedelta(seconds=30)
    poll_interval: timedelta = timedelta(seconds=1)
    stall: timedelta | None = None
    name: str | None = None
    listen: bool = True

    def __post_init__(self) -> None:
        self._check_number("concurrency", 1, 10_000)
        for name in ("lease", "poll_interval", *(("stall",) if self.stall is not None else ())):
            self._check_span(name, timedelta(milliseconds=10))
        self._check_span("grace", timedelta(0))
        if self.queues is not None:
            self._check_queues(self.queues)
        if self.name is not None:
            self._check_name(self.name)
        if not isinstance(self.listen, bool):
            raise OptionTypeError(f"listen must be a bool, got {type(self.listen).__name__}")

    @property
    def stall_after(self) -> timedelta:
        return self.stall if self.stall is not None else max(self.lease, timedelta(minutes=5))

    @property
    def rescue_interval(self) -> timedelta:
        return max(timedelta(seconds=0.5), min(timedelta(seconds=10), self.lease / 6))

    def _check_queues(self, queues: object) -> None:
        if isinstance(queues, str | bytes) or not isinstance(queues, Sequence):
            raise OptionTypeError(f"queues must be a list of names, got {type(queues).__name__}")
        if not queues:
            raise OptionError("queues must be a list of one or more names, got none")
        for queue in queues:
            if not isinstance(queue, str) or not re.fullmatch(NAME_RULE, queue):
                raise OptionError(f"queues: {queue!r} is no name; 1 to 63 of letters, digits, _ . - : /")

    def _check_name(self, name: object) -> None:
        if not isinstance(name, str):
            raise OptionTypeError(f"name must be a str, got {type(name).__name__}")
        if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
            raise OptionError(f"name must be 1 to {LONGEST_NAME} printable characters, got {name[:LONGEST_NAME]!r}")

    def _check_number(self, name: str, least: int, most: int) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise OptionTypeError(f"{name} must be an int, got {type(value).__name__}")
        if not least <= value <= most:
            raise OptionError(f"{name} must be from {least} to {most}, got {value}")

    def _check_span(self, name: str, least: timedelta) -> None:
        value = getattr(self, name)
        if not isinstance(value, timedelta):
            raise OptionTypeError(f"{name} must be a timedelta, got {type(value).__name__}")
        if not least <= value <= LONGEST_SPAN:
            raise OptionError(f"{name} must be from {least} to {LONGEST_SPAN}, got {value}")
