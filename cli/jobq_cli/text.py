"""Values as text for people. What comes from the database is untrusted: no control character leaves here raw."""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any

from jobq.spans import ago as ago
from jobq.spans import moment as moment
from jobq.spans import pause_end as pause_end
from jobq.spans import span as span

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


def load(running: int, concurrency: int | None) -> str:
    """`3/20`; `20/20 +849`: it has claimed so many ahead of free slots."""
    if concurrency is None:
        return f"{running}/-"
    ahead = running - concurrency
    return f"{concurrency}/{concurrency} +{ahead}" if ahead > 0 else f"{running}/{concurrency}"


def per_second(rate: float) -> str:
    """`12.3`, `0.03`; a slow queue is not a still one."""
    return f"{rate:.2f}" if 0 < rate < 0.1 else f"{rate:.1f}"


def bar(fraction: float, width: int = 20) -> str:
    """`[########------------]  40 %`, in ASCII: it also goes into pipes. Full only when all is done."""
    full = int(fraction * width)
    return f"[{'#' * full}{'-' * (width - full)}] {int(fraction * 100):>3} %"


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
