"""What the fleet's queues are set to, as expressions that claims read in their own statement."""

from __future__ import annotations

import sqlalchemy as sa

from jobq.tables import queues

IS_PAUSED: sa.ColumnElement[bool] = queues.c.paused_until > sa.func.now()


def limit_of() -> sa.ColumnElement[int | None]:
    """How many jobs of a queue may run at a time; NULL: as many as there is room for."""
    return sa.case((queues.c.fifo, sa.literal_column("1", sa.SmallInteger)), else_=queues.c.concurrency)
