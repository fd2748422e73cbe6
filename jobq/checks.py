"""What the values of options must be: each check returns the value, or says what is wrong with it.

A wrong type is an OptionTypeError, a value out of range an OptionError. Nothing is converted but subclasses of int and
str, to the plain value.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from jobq.backoff import LONGEST
from jobq.errors import OptionError, OptionTypeError
from jobq.tables import NAME_RULE

LATEST = datetime(
    9000, 1, 1, tzinfo=UTC
)  # Python's datetime ends with the year 9999, in any zone: a reader must not fail
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)  # what lies before means "now" as well; drivers differ at the year 1
LONGEST_KEY = 200  # bytes

_NAME = re.compile(NAME_RULE)


def show(value: object) -> str:
    """A short repr that cannot fail (that of an int of 5 000 digits does)."""
    try:
        return reprlib.repr(value)
    except Exception:
        return f"a {type(value).__name__}"


def typed(option: str, value: object, expected: type | tuple[type, ...], said: str) -> None:
    """Refuse another type than `expected`; `said` is how the message calls it."""
    if not isinstance(value, expected):
        raise OptionTypeError(f"{option}: expected {said}, got {type(value).__name__} {show(value)}")


def name(option: str, value: Any) -> str:
    """A queue's or a kind's name: it travels in notifications and labels."""
    typed(option, value, str, "a str")
    if not _NAME.fullmatch(value):
        raise OptionError(f"{option}: 1 to 63 of the letters A to Z and a to z, digits, _ . - : / (got {show(value)})")
    return str.__str__(value)  # of a str Enum its value


def whole(option: str, value: Any, lowest: int, highest: int) -> int:
    """An int within a range; a bool is none."""
    if isinstance(value, bool):
        raise OptionTypeError(f"{option}: expected an int from {lowest} to {highest}, got bool {value}")
    typed(option, value, int, f"an int from {lowest} to {highest}")
    if not lowest <= value <= highest:
        raise OptionError(f"{option}: from {lowest} to {highest}, got {show(value)}")
    return int(value)


def span(option: str, value: Any, *, zero: bool = False) -> timedelta:
    """A length of time: a timedelta, not negative, and zero only where that makes sense."""
    typed(option, value, timedelta, "a timedelta")
    if value < timedelta(0) or (not value and not zero):
        raise OptionError(f"{option}: {'0 or more' if zero else 'more than 0'}, got {value}")
    if value > LONGEST:
        raise OptionError(f"{option}: at most {LONGEST.days} days, got {value}")
    return value  # type: ignore[no-any-return]


def moment(option: str, value: Any) -> datetime:
    """A point in time: an aware datetime, since a naive one means something else on each machine."""
    typed(option, value, datetime, "an aware datetime")
    if value.utcoffset() is None:
        raise OptionError(f"{option}: naive datetime {value}, give it a time zone (datetime.now(UTC))")
    if not value <= LATEST:
        raise OptionError(f"{option}: before the year {LATEST.year}, got {value}")
    return max(value, EARLIEST)  # type: ignore[no-any-return]


def unique_key(option: str, value: Any) -> str:
    """A unique key: stored as it is given, so it must be a text that PostgreSQL can hold."""
    typed(option, value, str, "a str")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise OptionError(f"{option}: lone surrogate, PostgreSQL cannot hold it ({show(value)})") from error
    if "\0" in value:
        raise OptionError(f"{option}: NUL character, PostgreSQL cannot hold it ({show(value)})")
    if not 1 <= size <= LONGEST_KEY:
        raise OptionError(f"{option}: 1 to {LONGEST_KEY} bytes, got {size}")
    return str.__str__(value)


def unique(option: str, value: Any) -> bool | tuple[str, ...]:
    """Whether a key is derived: a bool, or the names of the args that count."""
    if isinstance(value, bool):
        return value
    typed(option, value, tuple, "a bool or a tuple of argument names")
    for each in value:
        typed(option, each, str, "a tuple of argument names, each a str")
        if not each.isidentifier():
            raise OptionError(f"{option}: {show(each)} is not the name of an argument")
    if not value:
        raise OptionError(f"{option}: an empty tuple names no argument (True: all count, False: no key)")
    return tuple(map(str.__str__, value))


def exceptions(option: str, value: Any) -> tuple[type[BaseException], ...]:
    """Classes of exceptions."""
    said = "a tuple of exception classes"
    typed(option, value, tuple, f"{said}, (ValueError,)")
    for each in value:
        typed(option, each, type, said)
        if not issubclass(each, BaseException):
            raise OptionTypeError(f"{option}: expected {said}, got {show(each)}")
    return value  # type: ignore[no-any-return]


def amounts(option: str, value: Any) -> dict[str, float]:
    """So much of each of several things: a mapping of their names to finite numbers above 0."""
    said = 'a mapping of names to numbers, {"GPU": 1}'
    typed(option, value, Mapping, said)
    for each, amount in value.items():
        typed(option, each, str, said)
        if isinstance(amount, bool) or not isinstance(amount, (int, float)):
            raise OptionTypeError(f"{option}: {show(each)}: expected a number, got {type(amount).__name__}")
        if not each or not 0 < amount < math.inf:
            raise OptionError(f"{option}: a name, and a finite number above 0, got {show(each)}: {show(amount)}")
    if not value:
        raise OptionError(f"{option}: an empty mapping names nothing (None: no resources)")
    return dict(value)


def one_of(option: str, value: Any, known: tuple[str, ...]) -> str:
    """One of a few words."""
    typed(option, value, str, " or ".join(map(repr, known)))
    if value not in known:
        raise OptionError(f"{option}: {' or '.join(map(repr, known))}, got {show(value)}")
    return str.__str__(value)
