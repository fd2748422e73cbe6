"""Values as text for people. What comes from the database is untrusted: no control character leaves here raw."""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

# Control characters (a terminal obeys them), line separators, marks that reorder text, and lone surrogates.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """One line, with escapes like \\x1b in place of what a terminal would obey."""
    return _UNSAFE.sub(lambda match: _escape(match[0]), text)


def printable_lines(text: str) -> list[str]:
    """The lines of a longer text, each printable; tabs become spaces."""
    return [printable(line.expandtabs()) for line in text.rstrip("\n").split("\n")]


def number(count: int, *, more: bool = False) -> str:
    """`10000+` for a count that stopped at its bound."""
    return f"{count}+" if more else str(count)


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


def json_line(value: Any) -> str:
    """JSON in ASCII on one line: times in ISO form, spans in seconds."""
    return json.dumps(value, default=_plain, allow_nan=False).replace("\x7f", "\\u007f")


def as_dict(value: Any) -> dict[str, Any]:
    """The fields of a dataclass; spans are named for their unit."""
    found: dict[str, Any] = {}
    for each in fields(value):
        content = getattr(value, each.name)
        timed = "timedelta" in str(each.type)
        found[f"{each.name}_seconds" if timed else each.name] = content
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if is_dataclass(value) and not isinstance(value, type):
        return as_dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form here")


def _escape(character: str) -> str:
    code = ord(character)
    return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
