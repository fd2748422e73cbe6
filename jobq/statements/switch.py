"""Settings of the server that some statements are planned with."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from jobq.statements.binds import param


@cache
def switch() -> sa.Executable:
    """Give a setting a value for the rest of the transaction; gives what it had. Binds: name, value."""
    name = param("name", sa.Text)
    set_ = sa.func.set_config(name, param("value", sa.Text), sa.true())
    return sa.select(sa.func.current_setting(name, type_=sa.Text).label("before"), set_)
