"""Time zones by their names."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from jobq import checks
from jobq.errors import OptionError


def zone_of(option: str, value: Any) -> ZoneInfo:
    """The zone of a name such as "Europe/Paris", or a ZoneInfo that has one. Raises: OptionError, OptionTypeError."""
    checks.typed(option, value, (str, ZoneInfo), 'the name of a time zone, such as "Europe/Paris"')
    key = value.key if isinstance(value, ZoneInfo) else str.__str__(value)
    if not key:
        raise OptionError(f"{option}: a time zone needs a name, such as Europe/Paris")
    try:
        return ZoneInfo(key)
    except (KeyError, ValueError, OSError) as error:  # a folder of zones is an OSError
        raise OptionError(f"{option}: no time zone {checks.show(key)} (a name such as Europe/Paris)") from error
