"""The schema around the tables, and the version table in it."""

from __future__ import annotations

import logging

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateSchema, DropSchema, DropTable

from jobq.tables import SCHEMA
from jobq_migrations.places import VERSION_TABLE
from jobq_migrations.refusals import NO_RIGHTS, sqlstate

logger = logging.getLogger("jobq.migrations")

NOT_EMPTY = "2BP01"


def version_table(schema: str) -> sa.Table:
    """As Alembic makes it: whoever comes first, `jobq migrate` or an application's history, the other reads it."""
    key = sa.PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc")
    column = sa.Column("version_num", sa.String(32), nullable=False)
    return sa.Table(VERSION_TABLE, sa.MetaData(), column, key, schema=schema)


def ensure_schema(connection: sa.Connection, schema: str) -> None:
    """IF NOT EXISTS would ask for the right to create it even where it is there."""
    if not schema_exists(connection, schema):
        connection.execute(CreateSchema(schema))


def schema_exists(connection: sa.Connection, schema: str) -> bool:
    namespace = sa.table("pg_namespace", sa.column("nspname"), schema="pg_catalog")
    return connection.scalar(sa.select(namespace.c.nspname).where(namespace.c.nspname == schema)) is not None


def remove_rest(connection: sa.Connection, schema: str) -> None:
    """After the last table: the version table, and the schema `jobq` where nothing else is in it and it is ours.

    A schema of another name is the application's own, and stays.
    """
    connection.execute(DropTable(version_table(schema)))
    if schema != SCHEMA:
        return
    try:
        with connection.begin_nested():
            connection.execute(DropSchema(schema))
    except DBAPIError as error:
        if sqlstate(error) not in (NOT_EMPTY, NO_RIGHTS):
            raise
        logger.info("schema %s is kept: something else is in it, or it belongs to another role", schema)
