"""Runs the revisions, for `jobq.migrate` (which hands over a connection) and for the `alembic` command.

Everything is one transaction under an advisory lock: whoever is killed leaves nothing, whoever comes second finds the
work done. Logging is left as the application has set it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from alembic import context
from alembic.util import CommandError
from sqlalchemy.schema import CreateSchema, DropTable

from jobq import urls
from jobq.errors import OptionError
from jobq.tables import SCHEMA, metadata
from jobq_migrations import VERSION_TABLE, schemas, turns
from jobq_migrations.refusals import refusals

options = context.config.attributes
schema: str = options.get("schema", SCHEMA)
lock_timeout: timedelta = options.get("lock_timeout", turns.LOCK_TIMEOUT)
wait: timedelta = options.get("wait", turns.WAIT)


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
        context.execute(turns.limits(lock_timeout))
        context.execute(CreateSchema(schema, if_not_exists=True))
        context.run_migrations()
        if context.get_revision_argument() is None:  # downgrade base
            context.execute(DropTable(schemas.version_table(schema), if_exists=True))  # older Alembics have dropped it


def run_online(connection: sa.Connection) -> None:
    configure(connection=connection)
    with refusals(schema, lock_timeout), context.begin_transaction():
        if context.get_context().opts.get("dont_mutate"):  # `alembic current`
            context.run_migrations()
        else:
            run_locked(connection)


def run_locked(connection: sa.Connection) -> None:
    turns.take_turn(connection, schema, wait)
    connection.execute(turns.limits(lock_timeout))
    schemas.ensure_schema(connection, schema)
    before = context.get_context().get_current_heads()
    context.run_migrations()
    if before and not context.get_context().get_current_heads():
        schemas.remove_rest(connection, schema)


def run_from_environment() -> None:
    try:
        url = urls.from_environment()
    except OptionError as error:
        raise CommandError(str(error)) from error
    if url is None:
        raise CommandError("no database to migrate: set JOBQ_DATABASE_URL or DATABASE_URL")
    arguments = urls.patient(url, "alembic")
    engine = sa.create_engine(url, poolclass=sa.NullPool, isolation_level="READ COMMITTED", connect_args=arguments)
    with engine.connect() as connection:
        run_online(connection)


if context.is_offline_mode():
    run_offline()
elif given := options.get("connection"):
    run_online(given)
else:
    run_from_environment()
