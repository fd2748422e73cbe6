"""What an option of a worker may be: each rule knows a right value, and says in one line what is wrong with another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeAlias

import sqlalchemy as sa

from jobq.errors import OptionError, OptionTypeError
from jobq.spans import span
from jobq.tables import NAME_RULE
from jobq.urls import normalize

Fault: TypeAlias = OptionError | OptionTypeError
LONGEST_SHOWN = 120


class Rule(Protocol):
    """A kind of value, and its range."""

    @property
    def allowed(self) -> str:
        """What may be written, where it is written as text: "a whole number from 1 to 10"."""
        ...

    def fault(self, name: str, value: object) -> Fault | None:
        """What is wrong with a value of Python's, in a text that begins with `name`; None when nothing is."""
        ...


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number. `unit`: what it counts, where the option's name does not tell."""

    least: int
    most: int
    unit: str | None = None

    @property
    def allowed(self) -> str:
        of = "" if self.unit is None else f" of {self.unit}"
        return f"a whole number{of} from {self.least} to {self.most}"

    def fault(self, name: str, value: object) -> Fault | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return _another_type(name, "an int", value)
        if not self.least <= value <= self.most:
            return OptionError(f"{name} must be from {self.least} to {self.most}, got {value}")
        return None


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time, in Python a timedelta."""

    least: timedelta = timedelta(milliseconds=10)
    most: timedelta = timedelta(days=1)

    @property
    def allowed(self) -> str:
        return f"seconds, or a span such as 90s or 5m, from {span(self.least)} to {span(self.most)}"

    def fault(self, name: str, value: object) -> Fault | None:
        if not isinstance(value, timedelta):
            return _another_type(name, "a timedelta", value)
        if not self.least <= value <= self.most:
            got = span(value) if value >= timedelta(0) else f"-{span(-value)}"
            return OptionError(f"{name} must be from {span(self.least)} to {span(self.most)}, got {got}")
        return None


@dataclass(frozen=True, slots=True)
class Flag:
    """Yes or no."""

    allowed: str = "true or false"

    def fault(self, name: str, value: object) -> Fault | None:
        return None if isinstance(value, bool) else _another_type(name, "a bool", value)


@dataclass(frozen=True, slots=True)
class Text:
    """A short text that can be printed."""

    longest: int = 200

    @property
    def allowed(self) -> str:
        return f"1 to {self.longest} printable characters"

    def fault(self, name: str, value: object) -> Fault | None:
        if not isinstance(value, str):
            return _another_type(name, "a str", value)
        if not 1 <= len(value) <= self.longest or not value.isprintable():
            return OptionError(f"{name} must be {self.allowed}, got {value[: self.longest]!r}")
        return None


@dataclass(frozen=True, slots=True)
class Names:
    """A list of names of queues, one or more."""

    allowed: str = 'a list of names, such as ["email", "default"]'

    def fault(self, name: str, value: object) -> Fault | None:
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            return _another_type(name, "a list of names", value)
        if not value:
            return OptionError(f"{name} must be a list of one or more names, got none")
        wrong = [each for each in value if not isinstance(each, str) or not re.fullmatch(NAME_RULE, each)]
        if wrong:
            return OptionError(f"{name}: {shown(wrong[0])} is no name (1 to 63 of letters, digits, _ . - : /)")
        return None


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """The URL of a PostgreSQL database. It may hold a password, so no message quotes it."""

    allowed: str = "a URL such as postgresql://user@host/database"

    def fault(self, name: str, value: object) -> Fault | None:
        if not isinstance(value, str | sa.URL):
            return _another_type(name, "a str or a sqlalchemy.URL", value)
        try:
            normalize(value)
        except OptionError as error:
            return OptionError(f"{name}: {error}")
        return None


def shown(value: object) -> str:
    """A value for a message: never longer than a line or two."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def refuse(faults: Iterable[Fault]) -> None:
    """Raises: the fault, where there is one; for several one error with the words of all."""
    found = list(faults)
    if len(found) == 1:
        raise found[0]
    if found:
        only_types = all(isinstance(each, OptionTypeError) for each in found)
        raise (OptionTypeError if only_types else OptionError)("; ".join(map(str, found)))


def _another_type(name: str, wanted: str, value: object) -> OptionTypeError:
    return OptionTypeError(f"{name} must be {wanted}, got {type(value).__name__}")
