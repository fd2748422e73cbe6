"""The revision of jobq's schema in a database: read it, demand it, bring it up to date.

Reading imports no Alembic: it happens at every start of a worker, a command or an application.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from io import StringIO
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from jobq.errors import BindError, SchemaError
from jobq.source import source_of
from jobq.tables import SCHEMA
from jobq_migrations import DIRECTORY, REVISIONS, VERSION_TABLE

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy.ext.asyncio import AsyncEngine

COMMAND = "run `jobq migrate` or `alembic upgrade head`"
LOCKED_PAUSE_SECONDS = 0.5  # for the traffic that a try has held up
OWN_HISTORY = " (in an Alembic history of your own: first `jobq migration new`)"

_alembic = threading.Lock()  # alembic.context is one global: two threads that migrate at once would mix


@dataclass(frozen=True, slots=True)
class Migrated:
    """The revision that was there, None for no schema, and the one that is there now."""

    before: str | None
    after: str


def migrate(
    engine: sa.Engine | AsyncEngine | sa.URL | str,
    *,
    lock_timeout: timedelta = timedelta(seconds=0.5),
    wait: timedelta = timedelta(minutes=1),
) -> Migrated:
    """Bring the tables of jobq to the revision that this version needs; at once done where they have it.

    May be called at every start and by many processes at once: one migrates, the others wait for it, `wait` at most.
    All of it is one transaction; it lets go after `lock_timeout` behind other sessions' locks, so that the traffic
    behind it never waits longer, and tries again until `wait` is over. Blocks: from a coroutine, call it through
    `asyncio.to_thread`. Of an AsyncEngine the URL is used, with psycopg.

    Raises: SchemaError, when the tables are newer than this version, stay locked, or the role lacks a right.
    """
    with _connection(engine) as connection:
        before = found_revision(connection)
        if before == REVISIONS[-1]:
            return Migrated(before, before)
        _refuse_unknown(connection, before)
        connection.rollback()  # Alembic begins its own transaction
        _upgrade(connection, lock_timeout=lock_timeout, wait=wait)
    return Migrated(before, REVISIONS[-1])


def migration_sql(since: str | None = None, *, schema: str = SCHEMA) -> str:
    """The SQL that `migrate` would run from revision `since`, None for an empty database; BEGIN and COMMIT included."""
    from alembic import command

    output = StringIO()
    with _alembic:
        command.upgrade(_config(output, schema=schema), f"{since or 'base'}:head", sql=True)
    return output.getvalue()


def check_schema(connection: sa.Connection) -> None:
    """Make sure that the tables have the revision that this version of jobq needs: two small reads.

    Raises: SchemaError, with the revision that is there and the command to type.
    """
    found, needed = found_revision(connection), REVISIONS[-1]
    if found == needed:
        return
    _refuse_unknown(connection, found)
    where = f"database {_name(connection)!r}"
    if found is None:
        message = f"no jobq schema in {where} (needs revision {needed}): {COMMAND}"
    else:
        message = f"the jobq schema in {where} is at revision {found}, this jobq needs {needed}: {COMMAND}{OWN_HISTORY}"
    raise SchemaError(message, found=found, needed=needed)


def found_revision(connection: sa.Connection) -> str | None:
    """The revision of the schema, None where there is no schema of jobq.

    Raises: SchemaError, when the role may not read it.
    """
    schema = schema_of(connection)
    place = connection.execute(_look(), {"schema": schema}).one()
    if place.table_oid is None and place.may_use is not False:
        return None
    if not (place.may_use and place.may_read):
        right = "SELECT on its tables" if place.may_use else "USAGE"
        raise SchemaError(
            f"role {place.role!r} may not read the jobq schema in database {place.database!r}:"
            f" grant it {right} (schema {schema}; all that a role needs: jobq grants)",
            found=None,
            needed=REVISIONS[-1],
        )
    return ", ".join(sorted(connection.scalars(_read()))) or None


def schema_of(connection: sa.Connection) -> str:
    """The schema that this connection's schema_translate_map gives for `jobq`."""
    translated: dict[str | None, str | None] = connection.get_execution_options().get("schema_translate_map") or {}
    return translated.get(SCHEMA) or SCHEMA


@cache
def _look() -> sa.Executable:
    """Whether schema and version table are there and may be read: never an error that would abort a transaction."""
    spaces = _catalog("pg_namespace", "oid", "nspname")
    tables = _catalog("pg_class", "oid", "relname", "relnamespace")
    here = sa.select(sa.func.current_database().label("database"), sa.func.current_user().label("role")).subquery()
    in_schema = spaces.c.nspname == sa.bindparam("schema", type_=sa.Text)
    in_space = sa.and_(tables.c.relnamespace == spaces.c.oid, tables.c.relname == sa.literal(VERSION_TABLE))
    joined = here.outerjoin(spaces, in_schema).outerjoin(tables, in_space)
    return sa.select(
        here.c.database,
        here.c.role,
        tables.c.oid.label("table_oid"),
        sa.func.has_schema_privilege(spaces.c.oid, "USAGE").label("may_use"),
        sa.func.has_table_privilege(tables.c.oid, "SELECT").label("may_read"),
    ).select_from(joined)


def _catalog(name: str, *columns: str) -> sa.TableClause:
    return sa.table(name, *[sa.column(column, sa.Text) for column in columns], schema="pg_catalog")


@cache
def _read() -> sa.Select[Any]:
    """A Table: of what `sa.table` makes, schema_translate_map leaves the schema alone."""
    version = sa.Table(VERSION_TABLE, sa.MetaData(), sa.Column("version_num", sa.Text), schema=SCHEMA)
    return sa.select(version.c.version_num)


def _name(connection: sa.Connection) -> str:
    return str(connection.scalar(sa.select(sa.func.current_database())))


def _refuse_unknown(connection: sa.Connection, found: str | None) -> None:
    """A revision that this version does not know is of a later one: nothing is touched."""
    if found is None or found in REVISIONS:
        return
    raise SchemaError(
        f"the jobq schema in database {_name(connection)!r} is at revision {found}, newer than this jobq knows"
        f" (it needs {REVISIONS[-1]}): install the version of jobq that migrated it, or a later one",
        found=found,
        needed=REVISIONS[-1],
    )


@contextmanager
def _connection(engine: Any) -> Iterator[sa.Connection]:
    """READ COMMITTED, whatever the engine has: after the wait for another process its work must be seen."""
    if isinstance(engine, sa.Engine):
        with engine.connect() as connection:
            yield connection.execution_options(isolation_level="READ COMMITTED")
        return
    url = getattr(engine, "url", engine)  # an AsyncEngine has one
    if not isinstance(url, sa.URL | str):
        raise BindError(f"migrate takes an engine or a URL, not {type(engine).__name__}: give it the session's engine")
    source = replace(source_of(url), is_own=True)
    arguments = source.arguments("jobq migrate")
    own = sa.create_engine(source.url, poolclass=sa.NullPool, isolation_level="READ COMMITTED", connect_args=arguments)
    with own.connect() as connection:
        yield connection


def _upgrade(connection: sa.Connection, *, lock_timeout: timedelta, wait: timedelta) -> None:
    from alembic.util import CommandError

    from jobq_migrations.refusals import was_locked

    ends = monotonic() + wait.total_seconds()
    while True:
        try:
            return _upgrade_once(connection, lock_timeout=lock_timeout, wait=wait)
        except CommandError as error:
            if not was_locked(error) or monotonic() >= ends:
                raise SchemaError(str(error), found=None, needed=REVISIONS[-1]) from error
        connection.rollback()
        sleep(LOCKED_PAUSE_SECONDS)


def _upgrade_once(connection: sa.Connection, **limits: timedelta) -> None:
    from alembic import command

    config = _config(StringIO(), schema=schema_of(connection), connection=connection, **limits)
    with _alembic:
        command.upgrade(config, "head")


def _config(output: StringIO, **attributes: Any) -> Config:
    """Alembic's settings without a file; the connection travels as an object, for a URL as text loses its % signs."""
    from alembic.config import Config

    config = Config(output_buffer=output, stdout=output, attributes=attributes)
    config.set_main_option("script_location", str(DIRECTORY).replace("%", "%%"))
    return config
