"""What a notification says: `queue|priority|run_at`, the earliest due job of a lane, never an id or an argument.

Besides: `taken|worker`, jobs were taken from this worker, and `awaited|job`, somebody waits for the end of this job; it
is told on a channel of the job's own.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa

from jobq.statements.binds import SMALLINTS, TEXTS, TIMES, param
from jobq.tables import TIMESTAMP


def payload(queue: Any, priority: Any, run_at: Any) -> sa.ColumnElement[str]:
    """The text of a notification, under 100 bytes: run_at in seconds since 1970, as any DateStyle can read it."""
    bar = sa.literal_column("'|'", sa.Text)
    text: sa.ColumnElement[str] = queue + bar + sa.cast(priority, sa.Text) + bar
    return text + sa.cast(sa.extract("epoch", run_at), sa.Text)


def told(queue: Any, priority: Any, run_at: Any) -> sa.ColumnElement[str | None]:
    """pg_notify when the bind `channel` is not NULL and the job is due; NULL otherwise.

    It has to stand where rows are really read (RETURNING, or a SELECT that is): in an unreferenced CTE it never runs.
    """
    channel = param("channel", sa.Text)
    due = sa.and_(channel.is_not(None), run_at <= sa.func.now())
    sent = sa.cast(sa.func.pg_notify(channel, payload(queue, priority, run_at)), sa.Text)
    return sa.case((due, sent))


def told_of_taken(worker_id: Any) -> sa.ColumnElement[str | None]:
    """pg_notify to the worker that had the job, when the bind `channel` is not NULL; for waiting jobs NULL."""
    channel = param("channel", sa.Text)
    lost = sa.and_(channel.is_not(None), worker_id.is_not(None))
    text = sa.literal_column("'taken|'", sa.Text) + sa.cast(worker_id, sa.Text)
    return sa.case((lost, sa.cast(sa.func.pg_notify(channel, text), sa.Text)))


@cache
def tell() -> sa.Executable:
    """Notify. Binds, of equal length: channels, texts."""
    columns = [sa.column(name, sa.Text) for name in ("channel", "text")]
    arrays = sa.func.unnest(param("channels", TEXTS), param("texts", TEXTS))
    row = arrays.table_valued(*columns).render_derived(name="row")
    return sa.select(sa.cast(sa.func.pg_notify(row.c.channel, row.c.text), sa.Text))


@cache
def announce() -> sa.Executable:
    """One notification a lane. Binds: channel, and of equal length: queues, priorities, run_ats."""

    columns: dict[str, Any] = {"queue": sa.Text, "priority": sa.SmallInteger, "run_at": TIMESTAMP}
    lane = (
        sa.func.unnest(param("queues", TEXTS), param("priorities", SMALLINTS), param("run_ats", TIMES))
        .table_valued(*[sa.column(name, type_) for name, type_ in columns.items()])
        .render_derived(name="lane")
    )
    text = payload(lane.c.queue, lane.c.priority, lane.c.run_at)
    return sa.select(sa.cast(sa.func.pg_notify(param("channel", sa.Text), text), sa.Text))
