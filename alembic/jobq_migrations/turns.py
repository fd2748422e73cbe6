"""One migration of a schema at a time, and none that queues for long behind other sessions' locks."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from jobq_migrations.refusals import LOCKED, refused, sqlstate

logger = logging.getLogger("jobq.migrations")

LOCK_TIMEOUT = timedelta(seconds=0.5)  # whoever comes behind a migration that waits for a lock waits as well
WAIT = timedelta(minutes=1)  # for another process that migrates
LIMITS = ("lock_timeout", "statement_timeout")


def take_turn(connection: sa.Connection, schema: str, wait: timedelta = WAIT) -> None:
    """Hold, until the transaction ends, the lock under which one process at a time migrates this schema."""
    key = sa.func.hashtextextended(sa.literal(f"jobq migrations of {schema}"), 0)
    if connection.scalar(sa.select(sa.func.pg_try_advisory_xact_lock(key))):
        return
    logger.warning("another process is migrating schema %s: waiting for it, %s at most", schema, wait)
    connection.execute(limits(wait))
    try:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(key)))
    except DBAPIError as error:
        if sqlstate(error) != LOCKED:
            raise
        reason = (
            f"another process was at it and not done after {wait}; try again when it has ended"
            " (pg_locks shows it, locktype advisory)"
        )
        raise refused(schema, reason) from error


def limits(longest: timedelta = LOCK_TIMEOUT) -> sa.Select[Any]:
    """A wait for a lock ends after that long, and nothing else is timed, whatever the role's own settings are."""
    milliseconds = max(1, round(longest / timedelta(milliseconds=1)))  # 0 would mean for ever
    local = dict(zip(LIMITS, (f"{milliseconds}ms", "0"), strict=True))
    return sa.select(*[sa.func.set_config(name, value, True) for name, value in local.items()])


def remember_limits() -> sa.Select[Any]:
    """Keep the transaction's own limits in settings of ours: no value has to be read, so it can be printed as well."""
    own = [(f"jobq.{name}", sa.func.current_setting(name)) for name in LIMITS]
    return sa.select(*[sa.func.set_config(name, value, True) for name, value in own])


def restore_limits() -> sa.Select[Any]:
    """Undo `limits`. Where a revision has committed in between, nothing is kept, and nothing is left to undo."""
    return sa.select(*[sa.func.set_config(name, _kept(name), True) for name in LIMITS])


def _kept(name: str) -> sa.ColumnElement[str]:
    kept = sa.func.nullif(sa.func.current_setting(f"jobq.{name}", True), "")
    return sa.func.coalesce(kept, sa.func.current_setting(name))
