"""Unique keys in SQL: one expression derives them, for one row, for many, and for rows that a SELECT makes."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

# As the suffix of the SELECT that is inserted: SQLAlchemy 2.0 does not cache `postgresql.insert` with
# `on_conflict_do_nothing` (1.3 ms a call in place of 0.3).
UNLESS_HELD = sa.text("ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO NOTHING")

_NOTHING_CHOSEN = sa.literal_column("'{}'::jsonb", JSONB)


def _text(value: str) -> sa.ColumnElement[str]:
    return sa.literal_column(f"'{value}'", sa.Text)


def derived_key(kind: Any, args: Any, names: Any) -> sa.ColumnElement[Any]:
    """The kind and a digest of the args, from jsonb's own text: equal for equal content, whichever process encoded it.

    `names` is a text: empty when all args count, else the names of those that do, by commas; NULL gives no key.
    """
    counted = sa.case((names == _text(""), args), else_=_chosen(args, names))
    digest = sa.func.sha256(sa.func.convert_to(sa.cast(counted, sa.Text), _text("UTF8")))
    return sa.case((names.is_not(None), kind + _text(":") + sa.func.encode(digest, _text("hex"))))


def key(given: Any, kind: Any, args: Any, names: Any) -> sa.ColumnElement[Any]:
    """The key that was given, else the derived one, else NULL."""
    return sa.func.coalesce(given, derived_key(kind, args, names))


def bytewise(text: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """An order that is the same in every database, whatever its collation."""
    return sa.collate(text, "C")


def _chosen(args: Any, names: Any) -> sa.ScalarSelect[Any]:
    """Of an object, the members that count; those that were not passed are not there."""
    pair = sa.func.jsonb_each(args).table_valued("key", sa.column("value", JSONB)).render_derived(name="pair")
    members = sa.func.coalesce(sa.func.jsonb_object_agg(pair.c.key, pair.c.value), _NOTHING_CHOSEN)
    counts = pair.c.key == sa.any_(sa.func.string_to_array(names, _text(",")))
    return sa.select(members).select_from(pair).where(counts).scalar_subquery()
