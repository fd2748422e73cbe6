"""The forms of JSON's own types: str, int, float, bool, None, and Any.

`encode` takes what the type checkers take (PEP 484), `decode` the one JSON form; nothing is parsed or coerced.
"""

from __future__ import annotations

from math import isfinite
from types import NoneType
from typing import Any

from jobq.codec.exact import Exact
from jobq.codec.form import Form, Misfit, Mismatch

EVERY_SHAPE = frozenset({"string", "number", "boolean", "null", "array", "object"})
NO_KEY_YET = " (the key of a new object? jobq.pk(object) flushes its session and gives it)"


def encode_str(value: Any) -> str:
    if type(value) is str:
        return value
    if isinstance(value, str):  # a StrEnum's member or Markup becomes plain text
        return str.__str__(value)
    raise Mismatch("str", value)


def decode_str(value: Any) -> str:
    if type(value) is str:
        return value
    raise Mismatch("str", value)


def encode_int(value: Any) -> int:
    if type(value) is int:
        return value
    if isinstance(value, int) and not isinstance(value, bool):  # an IntEnum's member becomes a plain number
        return int.__int__(value)
    raise Mismatch("int", value, NO_KEY_YET if value is None else "")


def decode_int(value: Any) -> int:
    if type(value) is int:
        return value
    raise Mismatch("int", value)


def encode_float(value: Any) -> float:
    if type(value) is float:
        return value + 0.0  # jsonb has no -0.0; equal arguments have one text
    if isinstance(value, float):  # numpy.float64 is one
        return float.__float__(value) + 0.0
    return widen(value)


def decode_float(value: Any) -> float:
    """jsonb gives 1e16 back as an integer, and a number that float cannot hold as inf."""
    if type(value) is not float:
        return widen(value)
    if not isfinite(value):
        raise Misfit("number too large for a float")
    return value


def widen(value: Any) -> float:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Mismatch("float", value)
    try:
        return float(value)
    except OverflowError:
        raise Misfit("int too large for a float") from None


def take_bool(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise Mismatch("bool", value)


def take_none(value: Any) -> None:
    if value is not None:
        raise Mismatch("None", value)


def decode_any(value: Any) -> Any:
    return value


STR = Form("str", frozenset({"string"}), encode_str, decode_str, python=str)
INT = Form("int", frozenset({"number"}), encode_int, decode_int, python=int)
FLOAT = Form("float", frozenset({"number"}), encode_float, decode_float, python=float)
BOOL = Form("bool", frozenset({"boolean"}), take_bool, take_bool, python=bool)
NONE = Form("None", frozenset({"null"}), take_none, take_none)
ANY = Form("Any", EVERY_SHAPE, Exact("annotate the parameter").encode, decode_any, nests=True, python=object)

AS_THEY_ARE = frozenset({decode_str, decode_int, take_bool})  # of the form's own type, they take any value
PLAIN: dict[Any, Form] = {str: STR, int: INT, float: FLOAT, bool: BOOL, NoneType: NONE, object: ANY}
