"""Spans and moments as words for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

NEVER = 9000  # the year


def span(length: timedelta | None) -> str:
    """`340ms`, `2.5s`, `12s`, `3m 20s`, `49m`, `2h 5m`, `12d`; `-` for none. The second unit where it matters."""
    if length is None:
        return "-"
    seconds = max(length.total_seconds(), 0.0)
    if 0 < seconds < 1:
        return f"{max(round(seconds * 1000), 1)}ms"
    if seconds < 10 and seconds % 1 >= 0.05:
        return f"{seconds:.1f}s"
    whole = int(seconds)
    for size, unit, rest, rest_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            units, left = whole // size, whole % size // rest
            return f"{units}{unit} {left}{rest_unit}" if left and units < 10 else f"{units}{unit}"
    return f"{whole}s"


def ago(at: datetime | None, now: datetime) -> str:
    """`3m 20s ago`, `in 5s`; by the database's clock. `-` for none."""
    if at is None:
        return "-"
    whole = timedelta(seconds=round((at - now).total_seconds()))
    return f"in {span(whole)}" if whole > timedelta(0) else f"{span(-whole)} ago"


def moment(at: datetime | None) -> str:
    """`2026-03-01 12:00:05 UTC`; `-` for none."""
    return "-" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def pause_end(until: datetime | None) -> str:
    """`until 2026-03-01 12:00:05 UTC`, `until it is resumed` for a pause without an end."""
    return "until it is resumed" if until is None or until.year >= NEVER else f"until {moment(until)}"
