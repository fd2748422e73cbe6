"""Statements on connections of the caller's that need the planner to do otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import sqlalchemy as sa

from jobq.statements.switch import switch


@contextmanager
def switched(connection: sa.Connection, name: str, value: str) -> Iterator[None]:
    """With this setting inside, and what it was before afterwards. In a transaction: in autocommit nothing changes."""
    before = connection.execute(switch(), {"name": name, "value": value}).scalar_one()
    yield
    connection.execute(switch(), {"name": name, "value": before})  # after an error the transaction ends it


def interpreted(connection: sa.Connection) -> AbstractContextManager[None]:
    """Without compiling what is planned.

    Reading the first rows of each lane is taken for as much work as reading all of them: PostgreSQL 15 compiled for
    0.2 s and more what then ran for 0.01.
    """
    return switched(connection, "jit", "off")
