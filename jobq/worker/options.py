"""What a worker can be told, validated together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from jobq.errors import OptionError, OptionTypeError
from jobq.tables import NAME_RULE
from jobq.urls import normalize

LONGEST_SPAN = timedelta(days=1)
LONGEST_NAME = 200
OF_CHILDREN = {"processes": (1, 1_000), "max_jobs_per_child": (1, 10**9), "max_memory_per_child": (16, 1 << 30)}


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """`queues` None: every queue with work of a kind that the worker knows. Spans are above 0, at most a day.

    processes, None as many as cores: children for handlers with executor="process". max_jobs_per_child: after so many
    jobs it is replaced. max_memory_per_child, in MiB: a job whose process uses more is ended and fails.
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
    pooler: bool = False
    listen_url: sa.URL | str | None = None
    processes: int | None = None
    max_jobs_per_child: int | None = None
    max_memory_per_child: int | None = None

    def __post_init__(self) -> None:
        self._check_number("concurrency", 1, 10_000)
        for name, (least, most) in OF_CHILDREN.items():
            if getattr(self, name) is not None:
                self._check_number(name, least, most)
        for name in ("lease", "poll_interval", *(("stall",) if self.stall is not None else ())):
            self._check_span(name, timedelta(milliseconds=10))
        self._check_span("grace", timedelta(0))
        if self.queues is not None:
            self._check_queues(self.queues)
        if self.name is not None:
            self._check_name(self.name)
        if self.listen_url is not None:
            self._check_url("listen_url", self.listen_url)
        for name in ("listen", "pooler"):
            if not isinstance(value := getattr(self, name), bool):
                raise OptionTypeError(f"{name} must be a bool, got {type(value).__name__}")

    @property
    def listens(self) -> bool:
        """Whether to wait for notifications: a pooler in transaction mode passes none on."""
        return self.listen and (not self.pooler or self.listen_url is not None)

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

    def _check_url(self, name: str, url: object) -> None:
        if not isinstance(url, str | sa.URL):
            raise OptionTypeError(f"{name} must be a str or a sqlalchemy.URL, got {type(url).__name__}")
        try:
            normalize(url)
        except OptionError as error:
            raise OptionError(f"{name}: {error}") from error

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
