"""How long a limited queue waits after a job: pure functions of how the job ended and how long it took."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from jobq.backoff import LONGEST
from jobq.errors import OptionError, OptionTypeError
from jobq.pausing import status_of

Throttle: TypeAlias = Callable[[str, "BaseException | None", timedelta], timedelta]
"""`(outcome, error, elapsed) -> wait` before the next job of the queue starts; 0 or less: none.

`outcome` is the text that is recorded (`ok`, `fail: no such user`, `err: ValueError: no`), or `snooze`, `pause`.
"""

ZERO = timedelta(0)
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class PerMinute:
    """A least time from a job's start to the next one's: `least`, or what `backoff` says of its outcome."""

    least: timedelta
    backoff: tuple[tuple[str, timedelta], ...] = ()

    def __call__(self, outcome: str, error: BaseException | None, elapsed: timedelta, /) -> timedelta:
        return max(ZERO, self._least(outcome, error) - elapsed)

    def _least(self, outcome: str, error: BaseException | None) -> timedelta:
        texts = [outcome, *_other_texts(error)]
        for prefix, wait in self.backoff:
            if any(text.startswith(prefix) for text in texts):
                return wait
        return self.least


def per_minute(n: float, /, *, backoff: Mapping[str, timedelta] | None = None) -> PerMinute:
    """A throttle for `n` jobs a minute: after a job that took less than its share of the minute, the queue waits.

    `backoff`: by the beginning of an outcome's text, what replaces that share; the first that fits counts. An error is
    known by its recorded text (`err: ValueError: ...`), by `err: ` and its message, and, where it is an HTTP client's,
    by `err: ` and its status (`err: 429`).

    Raises: OptionError, OptionTypeError.
    """
    if isinstance(n, bool) or not isinstance(n, int | float):
        raise OptionTypeError(f"per_minute takes a number of jobs a minute, got {type(n).__name__}")
    if not MINUTE / LONGEST <= n <= 1_000_000:  # NaN is neither
        raise OptionError(f"per_minute takes more than 0 and at most 1000000 jobs a minute, got {n}")
    return PerMinute(MINUTE / n, tuple(_pair(prefix, wait) for prefix, wait in (backoff or {}).items()))


def wait_after(throttle: Throttle, outcome: str, error: BaseException | None, elapsed: timedelta) -> timedelta:
    """What a throttle says, from 0 on. Raises: whatever it raises, TypeError or ValueError for what is no wait."""
    wait: Any = throttle(outcome, error, elapsed)
    if not isinstance(wait, timedelta):
        raise TypeError(f"a throttle returns a timedelta, this one {type(wait).__name__}")
    if wait > LONGEST:
        raise ValueError(f"a throttle returns at most {LONGEST.days} days, this one {wait}")
    return max(ZERO, wait)


def _other_texts(error: BaseException | None) -> list[str]:
    if error is None:
        return []
    status = status_of(error)
    return [f"err: {_message(error)}", *([f"err: {status}"] if status is not None else [])]


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def _pair(prefix: Any, wait: Any) -> tuple[str, timedelta]:
    if not isinstance(prefix, str):
        raise OptionTypeError(f"backoff: expected the beginning of an outcome, a str, got {type(prefix).__name__}")
    if not isinstance(wait, timedelta):
        raise OptionTypeError(f"backoff: expected a timedelta for {prefix!r}, got {type(wait).__name__}")
    if not ZERO <= wait <= LONGEST:
        raise OptionError(f"backoff: from 0 to {LONGEST.days} days for {prefix!r}, got {wait}")
    return prefix, wait
