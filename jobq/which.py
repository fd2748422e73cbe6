"""Which jobs a call is about: ids, or predicates; checked before any SQL is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa

from jobq.errors import OptionError, OptionTypeError
from jobq.statements.choose import Predicate

Which: TypeAlias = "int | Predicate"
LARGEST_ID = 2**63 - 1


def checked_id(value: Any) -> int:
    """A job's id as it can be bound: a positive 63-bit number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise OptionTypeError(f"a job's id is an int, not {type(value).__name__}")
    if not 1 <= value <= LARGEST_ID:
        raise OptionError("a job's id is between 1 and 2**63 - 1")
    return value


def ids_in(which: Sequence[Which]) -> list[int]:
    """The ids, ascending, each once; none when predicates were given."""
    if not which:
        raise OptionError(
            "nothing was chosen: give ids, or predicates over jobq.tables.all_jobs (sa.true() chooses all)"
        )
    if any(isinstance(each, sa.ColumnElement) for each in which):
        return []
    return sorted({checked_id(each) for each in which})


def predicates_in(which: Sequence[Any]) -> list[Predicate]:
    """The predicates; anything else among them is refused (`column == value` written with plain values is a bool)."""
    for each in which:
        if not isinstance(each, sa.ColumnElement):
            kind = type(each).__name__
            raise OptionTypeError(f"not a predicate over jobq.tables.all_jobs: {kind} (ids and predicates do not mix)")
    return list(which)


def checked_limit(limit: Any) -> int | None:
    """None, or 0 and more."""
    if limit is None:
        return None
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise OptionTypeError(f"limit is an int or None, not {type(limit).__name__}")
    if not 0 <= limit <= LARGEST_ID:
        raise OptionError("limit is 0 or more")
    return limit
