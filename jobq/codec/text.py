"""The JSON text: one prebuilt encoder and decoder, and the checks that need the finished text.

jsonb refuses NUL characters and lone surrogates, and the refusal aborts the caller's transaction. Looking at each
string would cost more than the encoding; so the finished text is searched once, at the speed of C, and only a hit
walks the value to find the path. Six plain characters `\\u0000` are a false hit, which the walk clears.
"""

from __future__ import annotations

import json
import sys
from typing import Any, NoReturn

from jobq.codec.form import Misfit, Mismatch
from jobq.codec.walk import MAX_DEPTH, MAX_DIGITS, inspect_tree
from jobq.errors import ArgsError

MAX_BYTES = 1024 * 1024

# Sorted keys and no spaces: equal arguments have one text, whatever the order they were given in.
ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, sort_keys=True, separators=(",", ":")
)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def dump(tree: Any, *, nests: bool) -> str:
    """The text of values that are JSON already. Raises Misfit with the path from `tree`, ArgsError when too long."""
    try:
        text = ENCODER.encode(tree)
        size = len(text) if text.isascii() else len(text.encode())
    except (ValueError, RecursionError) as error:  # NaN, too many digits, a lone surrogate; far too deep
        inspect_tree(tree)
        raise Misfit(f"no JSON form: {error}") from error
    if "\\u0000" in text or not python_limits_digits() or (nests and may_be_deep(text)):
        inspect_tree(tree)
    if size > MAX_BYTES:
        raise ArgsError("args", f"{size:,} bytes of JSON, the limit is {MAX_BYTES:,}: store the data, pass its key")
    return text


def load(text: str, *, nests: bool) -> dict[str, Any]:
    """The object that `text` holds. Raises Misfit: jsonb holds more digits and levels than Python reads."""
    try:
        tree, end = DECODER.raw_decode(text)  # half the cost of `decode`, which skips white space: jsonb writes none
        if end != len(text):
            tree = DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise Misfit(f"not readable as JSON: {error}") from error
    if type(tree) is not dict:
        raise Mismatch("a JSON object", tree)
    if nests and may_be_deep(text):
        inspect_tree(tree)
    return tree


def python_limits_digits() -> bool:
    """Whether the encoder itself refuses an int with more digits than workers read; that limit can be raised."""
    return 0 < sys.get_int_max_str_digits() <= MAX_DIGITS


def may_be_deep(text: str) -> bool:
    """Whether there are enough brackets at all; counting them is a hundred times cheaper than the walk."""
    return text.count("[") + text.count("{") > MAX_DEPTH
