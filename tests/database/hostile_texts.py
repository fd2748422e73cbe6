"""Texts that mean something to SQL, to a driver, to a terminal, to a log or to whoever reads one."""

from __future__ import annotations

import re

TEXTS = {
    "quotes": "'; DROP TABLE jobq.jobs; --",
    "identifier": '"; DROP SCHEMA jobq CASCADE; --',
    "percent": "%s %(x)s %%",
    "colon": ":x ::text \\:y",
    "dollars": "$$ $1 $jobq$",
    "backslash": "\\' \\x27 \\",
    "brace": "{x} {{}}",
    "like": "%_%",
    "newlines": "a\nb\r\n2026-01-01 00:00:00.000Z ERROR forged",
    "escape": "\x1b[2J\x1b[31mred\x1b]0;title\x07\x1b]8;;http://x\x1b\\link",
    "c1": "\x9b2J \x9d0;t\x9c \x90q\x9c",
    "bidi": "\u202eevil\u202c \u2066x\u2069 \u200f",
    "separators": "a\u2028b\u2029c\x0bd\x0ce\x85f\x1cg",
    "delete": "\x7f\x08\x08\x08",
    "long": "x" * 70_000,
    "rtl": "אבג \u0378 \U0010ffff",
}
# What must not arrive raw at a terminal or in a line of a log.
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
