"""When a failed job runs again. Pure: values in, values out."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from jobq.errors import OptionError, OptionTypeError

RetryPolicy: TypeAlias = Callable[[int, BaseException], timedelta | None]
"""`(failures, error) -> delay`, failures from 1; None: dead at once."""

NoRetryOn: TypeAlias = tuple[type[BaseException], ...]
"""Exceptions that no retry would mend, their subclasses with them: dead at once, whatever the policy says."""

LONGEST = timedelta(days=3650)  # a delay beyond it is a mistake, and would leave the range of timestamptz


@dataclass(frozen=True, slots=True)
class Exponential:
    """Wait `base`, doubled with each further failure up to `cap`; of each step a random share between half and all.

    The jitter keeps jobs that failed together from coming back together (Marc Brooker, "Exponential Backoff And
    Jitter", 2015, "equal jitter"). Any number of failures is safe: the power is never computed past the cap.
    """

    base: timedelta = timedelta(seconds=2)
    cap: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        for name, value in (("base", self.base), ("cap", self.cap)):
            if not isinstance(value, timedelta):
                raise OptionTypeError(f"a backoff's {name} must be a timedelta, got {type(value).__name__}")
        if not timedelta(0) < self.base <= self.cap <= LONGEST:
            raise OptionError(f"a backoff needs 0 < base <= cap <= {LONGEST}, got base {self.base}, cap {self.cap}")

    def step(self, failures: int) -> timedelta:
        """The longest wait after so many failures."""
        doublings = min(max(failures, 1) - 1, (self.cap // self.base).bit_length())
        return min(self.cap, self.base * (1 << doublings))

    def __call__(self, failures: int, error: BaseException, /) -> timedelta:
        return self.step(failures) * random.uniform(0.5, 1.0)  # not a secret: it only spreads load


@dataclass(frozen=True, slots=True)
class ByError:
    """A policy per exception type: the first entry that the error is an instance of; None there means dead at once."""

    policies: Mapping[type[BaseException], RetryPolicy | None]
    otherwise: RetryPolicy = Exponential()

    def __call__(self, failures: int, error: BaseException, /) -> timedelta | None:
        for kind, policy in self.policies.items():
            if isinstance(error, kind):
                return policy(failures, error) if policy else None
        return self.otherwise(failures, error)


def delay_after(policy: RetryPolicy, failures: int, error: BaseException) -> timedelta | None:
    """What the policy says, and the default's word where it raises or says what no clock can do.

    A user's policy must not be able to lose the job whose failure is being recorded.
    """
    try:
        delay = policy(failures, error)
    except BaseException:  # a SystemExit from here would end the worker's loop
        return Exponential()(failures, error)
    if delay is None:
        return None
    if not isinstance(delay, timedelta) or not timedelta(0) <= delay <= LONGEST:
        return Exponential()(failures, error)
    return delay
