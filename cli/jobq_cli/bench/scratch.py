"""Databases for measuring: made for it, named `jobq_bench_...`, and dropped. No other database is ever written to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

import jobq
from jobq import embedded, urls
from jobq.embedded.home import home_of
from jobq_cli.failures import Failed, said_by_database

PREFIX = "jobq_bench_"
SETTINGS = (
    "server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size",
)  # fmt: skip


class Scratch:
    """A server to make databases on. `url`: any database there, None for this project's own embedded server."""

    def __init__(self, url: str | None) -> None:
        self.is_embedded = url is None
        chosen = urls.normalize(embedded.ensure(embedded.project_directory()) if url is None else url)
        self._url = chosen
        self.keeper = sa.create_engine(chosen, isolation_level="AUTOCOMMIT", pool_size=1, max_overflow=0)
        self._template: str | None = None
        self._names: list[str] = []

    @property
    def log(self) -> Path | None:
        """What the embedded server writes; None of any other."""
        return home_of(embedded.project_directory()).log if self.is_embedded else None

    def database(self) -> sa.Engine:
        """An engine of a new database with jobq's empty tables."""
        if self._template is None:
            self._template = self._create(None)
            engine = self._engine(self._template)
            jobq.migrate(engine)
            engine.dispose()  # nobody may be connected to a template
        return self._engine(self._create(self._template))

    def drop(self, engine: sa.Engine) -> None:
        """Drop a database of ours; nothing else can be."""
        engine.dispose()
        name = str(engine.url.database)
        assert name in self._names
        self._names.remove(name)
        with self.keeper.connect() as connection:
            connection.exec_driver_sql(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def close(self) -> None:
        """Drop whatever is left."""
        for name in list(self._names):
            self.drop(self._engine(name))
        self.keeper.dispose()

    def _create(self, template: str | None) -> str:
        name = f"{PREFIX}{uuid4().hex[:12]}"
        source = f' TEMPLATE "{template}"' if template else ""
        try:
            with self.keeper.connect() as connection:
                connection.exec_driver_sql(f'CREATE DATABASE "{name}"{source}')
        except DBAPIError as error:
            raise Failed(
                f"cannot make a database for measuring on {urls.safe(self._url)}: {said_by_database(error)} (jobq bench"
                " needs the right CREATEDB, for databases of its own; without --database-url it takes the embedded"
                " server)"
            ) from None
        self._names.append(name)
        return name

    def _engine(self, name: str) -> sa.Engine:
        return sa.create_engine(self._url.set(database=name))


@contextmanager
def scratch(url: str | None) -> Iterator[Scratch]:
    """A server, and nothing left on it."""
    found = Scratch(url)
    try:
        yield found
    finally:
        found.close()
