"""What a user can mend becomes one line; Alembic's own commands print it without a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from alembic.util import CommandError
from sqlalchemy.exc import DBAPIError

LOCKED, NO_RIGHTS, EXISTS, READ_ONLY = "55P03", "42501", "42P07", "25006"
REASONS = {
    LOCKED: "other sessions held a lock on its tables for {lock_timeout}; try again, or with a longer lock timeout",
    NO_RIGHTS: "the role lacks a right ({said}); run it as the owner of the database",
    EXISTS: "a table is there that no migration made ({said}); move it out of the schema",
    READ_ONLY: "the server is read-only; use the primary",
}


@contextmanager
def refusals(schema: str, lock_timeout: timedelta) -> Iterator[None]:
    """The database's own refusals inside the block, as one line."""
    try:
        yield
    except DBAPIError as error:
        if (reason := REASONS.get(sqlstate(error) or "")) is None:
            raise
        said = str(error.orig).strip().partition("\n")[0]
        raise refused(schema, reason.format(said=said, lock_timeout=lock_timeout)) from error


def refused(schema: str, reason: str) -> CommandError:
    return CommandError(f"schema {schema} was not migrated, nothing is changed: {reason}")


def was_locked(error: CommandError) -> bool:
    """Whether it was a lock of others that stood in the way, so that another time may be better."""
    return isinstance(error.__cause__, DBAPIError) and sqlstate(error.__cause__) == LOCKED


def sqlstate(error: DBAPIError) -> str | None:
    """Of psycopg, psycopg2, asyncpg or pg8000, which keep it in places of their own."""
    raw: Any = error.orig
    details = raw.args[0] if raw.args and isinstance(raw.args[0], dict) else {}
    return getattr(raw, "sqlstate", None) or getattr(raw, "pgcode", None) or details.get("C")
