"""What a notification says: `queue|priority|run_at`, the earliest due job of a lane, never an id or an argument."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from jobq.statements.binds import param


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
