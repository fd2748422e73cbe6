"""Which database a command works on, and the connection to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from jobq import urls
from jobq.errors import EmbeddedError
from jobq.schema import check_schema
from jobq.source import Source
from jobq_cli.failures import Failed, said_by_database, say


@dataclass(frozen=True, slots=True)
class Target:
    """A database, and what chose it."""

    url: sa.URL
    source: str


def target(database_url: str | None) -> Target:
    """The URL given, else the environment's, else the embedded server of this project (started, if need be)."""
    if database_url:
        return Target(urls.normalize(database_url), "--database-url")
    if (found := urls.from_environment()) is not None:
        return Target(found, "environment")
    return Target(urls.normalize(_embedded()), "embedded")


@contextmanager
def connect(database_url: str | None) -> Iterator[sa.Connection]:
    """A connection to a database with the tables that this version needs; the command commits."""
    with raw_connect(target(database_url)) as connection:
        check_schema(connection)
        yield connection


@contextmanager
def raw_connect(chosen: Target) -> Iterator[sa.Connection]:
    """A connection, whatever is there."""
    engine = engine_for(chosen)
    try:
        connection = engine.connect()
    except DBAPIError as error:
        raise Failed(_unreachable(chosen, said_by_database(error))) from None
    except UnicodeError:  # of the codec for international names
        raise Failed(_unreachable(chosen, "no host can have this name")) from None
    with connection:
        yield connection


def engine_for(chosen: Target) -> sa.Engine:
    """No pool, nothing prepared (a pooler may stand in between), and no values in error texts."""
    arguments = Source(chosen.url, pooler=True, is_own=True).arguments("jobq")
    return sa.create_engine(chosen.url, poolclass=sa.NullPool, hide_parameters=True, connect_args=arguments)


def _unreachable(chosen: Target, reason: str) -> str:
    reason = reason.removeprefix("the database says: ")
    if chosen.url.password:
        reason = reason.replace(str(chosen.url.password), "***")
    return f"cannot connect to {urls.safe(chosen.url)} (from {chosen.source}): {reason}"


def _embedded() -> str:
    from jobq import embedded

    directory = embedded.project_directory()
    try:
        url = embedded.ensure(directory)
    except EmbeddedError as error:
        raise Failed(f"no database: set JOBQ_DATABASE_URL or give --database-url; embedded: {error}") from error
    say(f"using this project's own PostgreSQL in {directory} (set JOBQ_DATABASE_URL for another)")
    return url
