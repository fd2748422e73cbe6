"""The forms of the standard library's values: Decimal, UUID, date, datetime, timedelta."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any
from uuid import UUID

from jobq.codec.form import Form, Misfit, Mismatch
from jobq.codec.plain import NO_KEY_YET

DECIMAL_TEXT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[Ee][+-]?[0-9]{1,18})?", re.ASCII)
MICROSECOND = timedelta(microseconds=1)
EXACT_MICROSECONDS = 2**50  # 35 years; a float of seconds still tells neighbouring microseconds apart


def encode_decimal(value: Any) -> str:
    if not isinstance(value, Decimal):
        raise Mismatch("Decimal", value)
    if not value.is_finite():
        raise Misfit(f"{value} has no JSON form")
    return Decimal.__str__(value)


def decode_decimal(value: Any) -> Decimal:
    """A JSON fraction has been through a float in many a sender, so it is refused; an integer is exact."""
    if type(value) is int:
        return Decimal(value)
    if type(value) is not str or not DECIMAL_TEXT.fullmatch(value):
        raise Mismatch("Decimal as a string or integer", value)
    return Decimal(value)


def encode_uuid(value: Any) -> str:
    if not isinstance(value, UUID):
        raise Mismatch("UUID", value, NO_KEY_YET if value is None else "")
    return str(value)


def decode_uuid(value: Any) -> UUID:
    if type(value) is str:
        try:
            parsed = UUID(value)
        except ValueError:
            raise Mismatch("UUID", value) from None
        if str(parsed) == value:  # UUID() also takes braces, urn: and no hyphens
            return parsed
    raise Mismatch("UUID", value)


def encode_date(value: Any) -> str:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise Mismatch("date", value)
    return date.isoformat(value)


def decode_date(value: Any) -> date:
    if type(value) is str:
        try:
            parsed = date.fromisoformat(value)
        except ValueError:
            raise Mismatch("date", value) from None
        if parsed.isoformat() == value:  # fromisoformat also takes 20240131 and 2024-W05-3
            return parsed
    raise Mismatch("date", value)


def encode_datetime(value: Any) -> str:
    if not isinstance(value, datetime):
        raise Mismatch("datetime", value)
    return datetime.isoformat(aware(value))


def decode_datetime(value: Any) -> datetime:
    if type(value) is not str:
        raise Mismatch("datetime", value)
    try:
        return aware(datetime.fromisoformat(value))
    except ValueError:
        raise Mismatch("datetime", value) from None


def aware(value: datetime) -> datetime:
    if value.utcoffset() is None:
        raise Misfit("naive datetime, give it a time zone")
    return value


def encode_timedelta(value: Any) -> int | float:
    """Seconds, as SQL's `extract(epoch from ...)` has them."""
    if not isinstance(value, timedelta):
        raise Mismatch("timedelta", value)
    microseconds = value // MICROSECOND
    seconds, rest = divmod(microseconds, 1_000_000)
    if rest == 0:
        return seconds
    if abs(microseconds) < EXACT_MICROSECONDS:
        return microseconds / 1_000_000
    raise Misfit("beyond 35 years a timedelta must be of whole seconds, JSON's numbers hold no more")


def decode_timedelta(value: Any) -> timedelta:
    if type(value) is not int and type(value) is not float:
        raise Mismatch("timedelta as a number of seconds", value)
    if not isfinite(value):
        raise Misfit("number too large for a timedelta")
    try:
        return timedelta(seconds=value) if type(value) is int else round(value * 1_000_000) * MICROSECOND
    except OverflowError:
        raise Misfit("number too large for a timedelta") from None


STRING = frozenset({"string"})
STANDARD: dict[Any, Form] = {
    Decimal: Form("Decimal", frozenset({"string", "number"}), encode_decimal, decode_decimal, python=Decimal),
    UUID: Form("UUID", STRING, encode_uuid, decode_uuid, python=UUID),
    date: Form("date", STRING, encode_date, decode_date, python=date),
    datetime: Form("datetime", STRING, encode_datetime, decode_datetime, python=datetime),
    timedelta: Form("timedelta", frozenset({"number"}), encode_timedelta, decode_timedelta, python=timedelta),
}
