"""Spans of time as they are typed: `90s`, `5m`, `1h30m`, `2d`."""

from __future__ import annotations

import re
from datetime import timedelta

import typer

LONGEST = timedelta(days=36_500)
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_FORM = re.compile(
    r"(?:(?P<d>[0-9]{1,7})d)?(?:(?P<h>[0-9]{1,7})h)?(?:(?P<m>[0-9]{1,7})m)?(?:(?P<s>[0-9]{1,7}(?:\.[0-9]{1,6})?)s)?"
)


def read_duration(text: str) -> timedelta | None:
    """The span that a text says, from the largest unit to the smallest; None when it says none."""
    found = _FORM.fullmatch(text.strip().lower())
    if found is None or not any(found.groups()):
        return None
    return timedelta(**{_UNITS[unit]: float(number) for unit, number in found.groupdict().items() if number})


def parse_duration(text: str) -> timedelta:
    """The span that a text says; above zero. To be an option's `parser=`. Raises: typer.BadParameter."""
    span = read_duration(text)
    if span is None:
        raise typer.BadParameter(f"{text!r} is no span of time: write 90s, 5m, 1h30m or 2d")
    if not timedelta(0) < span <= LONGEST:
        raise typer.BadParameter(f"{text!r}: above zero and at most {LONGEST.days} days")
    return span
