"""From what is written, as text or in TOML, to the values that the rules of options check."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import singledispatch
from typing import Any

from jobq.worker.rules import DatabaseUrl, Flag, Names, Rule, Span, Text, Whole
from jobq_cli.durations import read_duration
from jobq_cli.settings.rules import Choice, Place

WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


class Unreadable(ValueError):
    """It has not the form of such a value."""


@singledispatch
def from_text(rule: Rule, text: str) -> Any:
    """The value that a text of the environment or the command line says. Raises: Unreadable."""
    raise NotImplementedError(type(rule).__name__)


@from_text.register(Text)
@from_text.register(DatabaseUrl)
@from_text.register(Place)
def _(rule: Rule, text: str) -> str:
    return text


@from_text.register(Choice)
def _(rule: Choice, text: str) -> str:
    try:
        return rule.words(text.strip().lower())
    except ValueError:
        raise Unreadable from None


@from_text.register
def _(rule: Whole, text: str) -> int:
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,20}\s*", text):
        raise Unreadable
    return int(text)


@from_text.register
def _(rule: Span, text: str) -> timedelta:
    try:
        return timedelta(seconds=float(text))
    except (ValueError, OverflowError):  # no number, or not one that is a time: nan, inf
        found = read_duration(text)
    if found is None:
        raise Unreadable
    return found


@from_text.register
def _(rule: Flag, text: str) -> bool:
    if (found := WORDS.get(text.strip().lower())) is None:
        raise Unreadable
    return found


@from_text.register
def _(rule: Names, text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


def from_line(rule: Rule, given: str | bool) -> Any:
    """The value that the command line says; a flag is there, or there with --no-. Raises: Unreadable."""
    return given if isinstance(given, bool) else from_text(rule, given)


def from_toml(rule: Rule, value: object) -> Any:
    """The value that TOML says, in TOML's own types; spans also as text. Raises: Unreadable."""
    match rule, value:
        case Flag(), bool():
            return value
        case _, bool():
            raise Unreadable
        case Whole(), int():
            return value
        case Span(), int() | float() | str():
            return from_text(rule, str(value))
        case Names(), list():
            return value
        case ((Text() | DatabaseUrl() | Place() | Choice()), str()):
            return from_text(rule, value)
    raise Unreadable
