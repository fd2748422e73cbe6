"""The demo's database: one of its own, on the embedded server of this project's folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import sqlalchemy as sa

import jobq
from jobq import embedded, urls
from jobq_cli.demo.tables import Base
from jobq_cli.failures import Failed

NAME = "jobq_demo"
LINGER_MINUTES = 15


@contextmanager
def database() -> Iterator[sa.Engine]:
    """A fresh database with the tables of jobq and of the shop; it stays, for looking at what the demo has done.

    `jobq db stop` in the same folder ends its server. Raises: Failed, when another demo runs here.
    """
    server = urls.normalize(embedded.ensure(embedded.project_directory(), linger=60.0 * LINGER_MINUTES))
    keeper = sa.create_engine(server, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with keeper.connect() as connection:
        if not connection.scalar(_reserve()):
            raise Failed("another demo is running in this folder: wait for its end")
        connection.execute(sa.text("DROP DATABASE IF EXISTS jobq_demo WITH (FORCE)"))
        connection.execute(sa.text("CREATE DATABASE jobq_demo"))
        engine = sa.create_engine(server.set(database=NAME))
        try:
            _make_tables(engine)
            yield engine
        finally:
            engine.dispose()


def _make_tables(engine: sa.Engine) -> None:
    jobq.migrate(engine)
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema("shop"))
        Base.metadata.create_all(connection)


@cache
def _reserve() -> sa.Select[tuple[bool]]:
    """Held until the connection is closed."""
    key = sa.func.hashtextextended(sa.literal_column("'jobq demo'"), sa.literal_column("0"))
    return sa.select(sa.func.pg_try_advisory_lock(key))
