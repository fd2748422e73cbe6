"""Runs the revisions, for `jobq.migrate` (which hands over a connection) and for the `alembic` command.

Everything is one transaction under an advisory lock: whoever is killed leaves nothing, whoever comes second finds the
work done. Logging is left as the application has set it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from alembic import context
from alembic.util import CommandError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateSchema, DropSchema, DropTable

from jobq import urls
from jobq.errors import OptionError
from jobq.tables import SCHEMA, metadata
from jobq_migrations import VERSION_TABLE

logger = logging.getLogger("jobq.migrations")

options = context.config.attributes
schema: str = options.get("schema", SCHEMA)
lock_timeout: timedelta = options.get("lock_timeout", timedelta(seconds=5))
wait: timedelta = options.get("wait", timedelta(minutes=1))  # for another process that migrates

LOCKED, NO_RIGHTS, EXISTS, READ_ONLY, NOT_EMPTY = "55P03", "42501", "42P07", "25006", "2BP01"
REASONS = {
    LOCKED: f"other sessions held a lock on its tables for {lock_timeout}; try again, or with a longer lock timeout",
    NO_RIGHTS: "the role lacks a right ({said}); run it as the owner of the database",
    EXISTS: "a table is there that no migration made ({said}); move it out of the schema",
    READ_ONLY: "the server is read-only; use the primary",
}


def configure(**how: Any) -> None:
    context.configure(
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        version_table_schema=schema,
        include_schemas=True,
        include_name=lambda name, type_, _parents: type_ != "schema" or name == schema,
        compare_server_default=True,
        jobq_schema=schema,  # read by the revisions
        **how,
    )


def run_offline() -> None:
    configure(dialect_name="postgresql", literal_binds=True)
    with context.begin_transaction():
        context.execute(limits(lock_timeout))
        context.execute(CreateSchema(schema, if_not_exists=True))
        context.run_migrations()
        if context.get_revision_argument() is None:  # downgrade base
            context.execute(DropTable(version_table(), if_exists=True))  # older Alembics have dropped it


def run_online(connection: sa.Connection) -> None:
    configure(connection=connection)
    with refusals(), context.begin_transaction():
        if context.get_context().opts.get("dont_mutate"):  # `alembic current`
            context.run_migrations()
        else:
            run_locked(connection)


def run_locked(connection: sa.Connection) -> None:
    take_turn(connection)
    connection.execute(limits(lock_timeout))
    if not schema_exists(connection):  # IF NOT EXISTS would ask for the right to create it even where it is there
        connection.execute(CreateSchema(schema))
    before = context.get_context().get_current_heads()
    context.run_migrations()
    if before and not context.get_context().get_current_heads():
        remove_rest(connection)


def take_turn(connection: sa.Connection) -> None:
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
        raise refused(
            f"another process was at it and not done after {wait}; try again when it has ended"
            " (pg_locks shows it, locktype advisory)"
        ) from error


def limits(longest: timedelta) -> sa.Select[Any]:
    """A wait for a lock ends after that long, and nothing else is timed, whatever the role's own settings are."""
    milliseconds = max(1, round(longest / timedelta(milliseconds=1)))  # 0 would mean for ever
    local = {"lock_timeout": f"{milliseconds}ms", "statement_timeout": "0"}
    return sa.select(*[sa.func.set_config(name, value, True) for name, value in local.items()])


def version_table() -> sa.Table:
    return sa.Table(VERSION_TABLE, sa.MetaData(), schema=schema)


def schema_exists(connection: sa.Connection) -> bool:
    namespace = sa.table("pg_namespace", sa.column("nspname"), schema="pg_catalog")
    return connection.scalar(sa.select(namespace.c.nspname).where(namespace.c.nspname == schema)) is not None


def remove_rest(connection: sa.Connection) -> None:
    """After `downgrade base`: the version table, and the schema where nothing else is in it and it is ours."""
    connection.execute(DropTable(version_table()))
    try:
        with connection.begin_nested():
            connection.execute(DropSchema(schema))
    except DBAPIError as error:
        if sqlstate(error) not in (NOT_EMPTY, NO_RIGHTS):
            raise
        logger.info("schema %s is kept: something else is in it, or it belongs to another role", schema)


@contextmanager
def refusals() -> Iterator[None]:
    """What a user can mend becomes one line; Alembic's own commands print it without a traceback."""
    try:
        yield
    except DBAPIError as error:
        if (reason := REASONS.get(sqlstate(error) or "")) is None:
            raise
        said = str(error.orig).strip().partition("\n")[0]
        raise refused(reason.format(said=said)) from error


def refused(reason: str) -> CommandError:
    return CommandError(f"schema {schema} was not migrated, nothing is changed: {reason}")


def sqlstate(error: DBAPIError) -> str | None:
    """Of psycopg, psycopg2 or pg8000, which keep it in places of their own."""
    raw: Any = error.orig
    details = raw.args[0] if raw.args and isinstance(raw.args[0], dict) else {}
    return getattr(raw, "sqlstate", None) or getattr(raw, "pgcode", None) or details.get("C")


def run_from_environment() -> None:
    try:
        url = urls.from_environment()
    except OptionError as error:
        raise CommandError(str(error)) from error
    if url is None:
        raise CommandError("no database to migrate: set JOBQ_DATABASE_URL or DATABASE_URL")
    engine = sa.create_engine(url, poolclass=sa.NullPool, isolation_level="READ COMMITTED")
    with engine.connect() as connection:
        run_online(connection)


if context.is_offline_mode():
    run_offline()
elif given := options.get("connection"):
    run_online(given)
else:
    run_from_environment()
