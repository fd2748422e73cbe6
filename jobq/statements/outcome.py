"""The word of an outcome in SQL: what `jobq.outcomes.read_outcome` is in Python; every count uses one of the two."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from jobq.outcomes import WORDS


def _text(value: str) -> sa.ColumnElement[str]:
    return sa.literal_column(f"'{value}'", sa.Text)


def word_of(outcome: Any) -> sa.ColumnElement[str]:
    """ok, fail, skip or err. A finished job without a text ended well: ok."""
    word = sa.func.split_part(outcome, _text(":"), sa.literal_column("1", sa.Integer))
    known = word.in_([_text(each) for each in WORDS])
    nothing = sa.func.coalesce(outcome, _text("")) == _text("")
    return sa.case((nothing, _text("ok")), (known, word), else_=_text("err"))
