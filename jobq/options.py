"""How a job is enqueued: what its handler's registration settles, and what one enqueue chooses over it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

from jobq import checks
from jobq.backoff import Exponential, NoRetryOn, RetryPolicy
from jobq.errors import OptionError, OptionTypeError
from jobq.masking import META

Priority: TypeAlias = Literal[0, 1, 2, 3]
"""Smaller runs first; 1 is the default."""

Unique: TypeAlias = bool | tuple[str, ...]
"""True: a key from all args; a tuple: from those that it names; False: no key."""

OnConflict: TypeAlias = Literal["ignore", "replace", "reschedule", "raise"]
OnInterrupt: TypeAlias = Literal["retry", "fail"]

MOST_ATTEMPTS = 32767  # what no max_attempts at all stands for, where a claim compares it with failures


def _callable(option: str, value: object) -> object:
    if not callable(value):
        raise OptionTypeError(f"{option}: expected (failures, error) -> timedelta or None, got {checks.show(value)}")
    return value


_CHECKS: dict[str, Callable[[str, Any], object]] = {
    "queue": checks.name,
    "priority": partial(checks.whole, lowest=0, highest=3),
    "run_at": checks.moment,
    "delay": partial(checks.span, zero=True),
    "max_attempts": partial(checks.whole, lowest=1, highest=MOST_ATTEMPTS),
    "timeout": checks.span,
    "retry": _callable,
    "unique_key": checks.unique_key,
    "unique": checks.unique,
    "executor": checks.name,
    "resources": checks.amounts,
    "no_retry_on": checks.exceptions,
    "on_interrupt": partial(checks.one_of, known=("retry", "fail")),
    "on_conflict": partial(checks.one_of, known=get_args(OnConflict)),
    "max_wait": checks.span,
    "keep": partial(checks.span, zero=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the registration of a handler settles, checked."""

    queue: str = "default"
    priority: Priority = 1
    max_attempts: int = 5
    timeout: timedelta | None = None
    retry: RetryPolicy = field(default_factory=Exponential)
    no_retry_on: NoRetryOn = ()
    unique: Unique = False
    executor: str = "auto"
    resources: Mapping[str, float] | None = None
    on_interrupt: OnInterrupt = "retry"
    keep: timedelta | None = None

    def __post_init__(self) -> None:
        _check(self)

    def as_options(self) -> Options:
        """What each job's row says by itself; timeout and keep stay with the handler, that can change them later."""
        return Options(
            queue=self.queue, priority=self.priority, max_attempts=self.max_attempts, unique=self.unique or None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What one enqueue chooses, checked; None: as the handler says."""

    queue: str | None = None
    priority: Priority | None = None
    run_at: datetime | None = None
    delay: timedelta | None = None
    max_attempts: int | None = None
    timeout: timedelta | None = None
    unique_key: str | None = None
    unique: Unique | None = None
    on_conflict: OnConflict | None = None
    max_wait: timedelta | None = None
    keep: timedelta | None = None

    def __post_init__(self) -> None:
        _check(self)
        if self.run_at is not None and self.delay is not None:
            raise OptionError("run_at and delay: both say when the job is due, give one of them")
        if self.unique_key is not None and self.unique:
            raise OptionError("unique_key and unique: the key is given or derived (unique=False switches that off)")
        if self.delay is not None and self.max_wait is not None and self.delay > self.max_wait:
            raise OptionError(f"max_wait: at least the delay of {self.delay}, got {self.max_wait}")

    def over(self, below: Options) -> Options:
        """These options, and where they choose nothing those below."""
        return Options(**{**dict(_given(below)), **dict(_given(self))})

    @property
    def is_keyed(self) -> bool:
        return self.unique_key is not None or bool(self.unique)

    @property
    def unique_names(self) -> str | None:
        """`unique` as SQL has it: by commas, empty for all."""
        if isinstance(self.unique, tuple):
            return ",".join(self.unique)
        return "" if self.unique else None

    @property
    def changes_holder(self) -> bool:
        """Whether a waiting job that holds the key is changed."""
        return self.on_conflict in ("replace", "reschedule")

    def demand_sense(self) -> None:
        """Refuse what means nothing without another option, once all of them are chosen."""
        if self.changes_holder and not self.is_keyed:
            raise OptionError(f"on_conflict: {self.on_conflict!r} needs a key, give unique_key or unique")
        if self.max_wait is not None and self.on_conflict != "reschedule":
            raise OptionError("max_wait: goes with on_conflict='reschedule' alone")

    def is_later(self, now: datetime) -> bool:
        """Whether the job is surely not due at once, by a clock that may be wrong: only for what may be wrong."""
        return bool(self.delay) or (self.run_at is not None and self.run_at > now)

    def binds(self, secrets: Collection[str] = ()) -> dict[str, Any]:
        """The binds of the statements in statements/enqueue.py that come from options, and the secret parameters."""
        return {
            "queue": self.queue,
            "priority": self.priority,
            "run_at": self.run_at and self.run_at.astimezone(UTC),
            "delay": _seconds(self.delay),
            "max_attempts": self.max_attempts,
            "unique_key": self.unique_key,
            "unique_names": self.unique_names,
            "max_wait": _seconds(self.max_wait),
            "meta": self._meta(secrets),
        }

    def _meta(self, secrets: Collection[str]) -> str:
        spans = {"timeout": self.timeout, "keep": self.keep}
        meta: dict[str, Any] = {name: span.total_seconds() for name, span in spans.items() if span is not None}
        return json.dumps({**meta, META: sorted(secrets)} if secrets else meta)


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


def _given(values: Settings | Options) -> Iterator[tuple[str, Any]]:
    for each in fields(values):
        value = getattr(values, each.name)
        if value is not None or each.default is not None:
            yield each.name, value


def _check(values: Settings | Options) -> None:
    for option, value in _given(values):
        object.__setattr__(values, option, _CHECKS[option](option, value))
