"""How long the server may take for a statement."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from jobq.statements.binds import param


@cache
def answer_within() -> sa.Select[tuple[str]]:
    """Bound the statements of this transaction alone. Bind: limit, in milliseconds, as text."""
    return sa.select(sa.func.set_config("statement_timeout", param("limit", sa.Text), sa.true()))
