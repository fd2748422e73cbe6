"""Random and nasty JSON values, and values that no job can carry; both from a seed, so that one is found again."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Any

MOST_LEVELS = 90  # a job's args have at most 100
NASTY_TEXTS = [
    *["", " ", "\\u0000", "\\", '"', "'", "\\\\'\"", "\x01\x02\x1f\x7f\x80\x9f", "\b\f\n\r\t\v", "\ufeff"],
    *["\ufffe\uffff", "\U0010ffff\U0001fffe", "é\u0301é", "e\u0301", "\u202eabc\u202c", "\U0001f468\u200d\U0001f469"],
    *["%s %(a)s %% {0} {x} :name $1 ?", "'; DROP TABLE jobs; --", "\\N", "\\.", "{1,2}", '{"a": 1}', "[]", "null"],
    *["true", "NaN", "Infinity", "1e400", "0x10", "\\x00", "E'\\\\x'", "__proto__", "x" * 300, "--", "$$", "\x1b[31m"],
    "\u2028\u2029",
]
LONG_TEXTS = ["ß" * 20_000, "\\" * 1_000, '"' * 1_000, "\U0001f600" * 2_000, "x" * 100_000]
NASTY_NUMBERS: list[Any] = [
    *[0, -0.0, -1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**100, -(10**4299), 10**4299 + 1],
    *[0.1, 1e15, 1e16, 1.5e16, 9007199254740993.0, 1e22, 1e23, 1e308, 1.7976931348623157e308, 5e-324, 1e-7],
    *[2.2250738585072014e-308, 123456789.123456789, True, False, None],
]
POISONS: list[Callable[[Random], Any]] = [
    lambda random: random.choice([float("nan"), float("inf"), float("-inf")]),
    lambda random: nasty_text(random) + "\0" + nasty_text(random),
    lambda random: {"\0": 1},
    lambda random: random.choice(["\ud800", "a\udfffb", "\udc00\ud800", b"caf\xe9".decode("utf-8", "surrogateescape")]),
    lambda random: {"a\udcff": 1},
    lambda random: random.choice([10**4300, -(10**5000), 1 << 20_000]),
    lambda random: nested(random.randint(120, 5_000), 1),
    lambda random: random.choice([b"bytes", {1, 2}, object(), 1j, Decimal("1"), datetime(2030, 1, 1), range(3)]),
    lambda random: {random.choice([1, None, True, 1.5, (1, 2), b"k"]): "v"},
    lambda random: "x" * (1 << 20),
    lambda random: itself(),
]


def value(random: Random, levels: int = 4) -> Any:
    """What a job may carry."""
    kind = random.random()
    if levels and kind < 0.25:
        return [value(random, levels - 1) for _ in range(random.randint(0, 4))]
    if levels and kind < 0.5:
        return {nasty_text(random): value(random, levels - 1) for _ in range(random.randint(0, 4))}
    if kind < 0.51:
        return nested(random.randint(5, MOST_LEVELS), number(random))
    return nasty_text(random) if kind < 0.75 else number(random)


def poisoned(random: Random) -> Any:
    """What no job can carry: somewhere in a good value there is one thing that JSON, jsonb or Python refuses."""
    poison = random.choice(POISONS)(random)
    for _ in range(random.randint(0, 3)):
        poison = random.choice([lambda it: [value(random, 1), it], lambda it: {nasty_text(random): it}])(poison)
    return poison


def nasty_text(random: Random) -> str:
    kind = random.random()
    if kind < 0.5:
        return random.choice(NASTY_TEXTS if kind > 0.001 else LONG_TEXTS)
    return "".join(character(random) for _ in range(random.randint(0, 12)))


def character(random: Random) -> str:
    """Any that is not NUL and no surrogate; half of them ASCII."""
    code = random.randint(1, 127) if random.random() < 0.5 else random.randint(1, 0x10FFFF)
    return chr(code) if not 0xD800 <= code <= 0xDFFF else "\ufffd"


def number(random: Random) -> Any:
    """Nasty ones, integers of many lengths, and floats of any bits."""
    kind = random.random()
    if kind < 0.4:
        return random.choice(NASTY_NUMBERS)
    if kind < 0.7:
        return random.randint(-(2 ** random.randint(1, 200)), 2 ** random.randint(1, 200))
    found: float = struct.unpack("d", random.randbytes(8))[0]
    return found if found - found == 0 else random.random()


def nested(levels: int, inside: Any) -> Any:
    for n in range(levels):
        inside = [inside] if n % 2 else {"k": inside}
    return inside


def itself() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


def same(one: Any, other: Any) -> bool:
    """Equal, and no boolean where a number was: a float from 1e16 on may come back as the integer that it equals."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(each, other[key]) for key, each in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)
