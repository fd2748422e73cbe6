"""The databases of a test run: a server, a migrated template, and what is cloned from it.

Shared by the processes of a run, which find each other in one folder. The last of them removes what was made.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString
from uuid import uuid4

import psycopg
import sqlalchemy as sa
from psycopg import sql

from jobq import embedded, urls
from jobq.embedded.locks import exclusive

TEST_URL = "JOBQ_TEST_DATABASE_URL"
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 2 << 30  # what must be free there: files in memory are made ten times faster than on a busy disk
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_wal_size": "256MB",
    "max_connections": "300",
    "max_prepared_transactions": "20",
}


class Server:
    """Where a run's databases are; `url` may create databases."""

    def __init__(self, url: str, run: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self._template = f"jobq_template_{run}"
        self._plain = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)

    def template(self, migrate: Callable[[str], None]) -> str:
        """The name of a database with the tables that `migrate(url)` makes: made by the first process that asks."""
        made = self.folder / "template"
        with exclusive(self.folder / "template.lock"):
            if not made.exists():
                self._drop(self._template)
                self._do("CREATE DATABASE {}", self._template)
                migrate(self._url_of(self._template))
                self._end_connections(self._template)
                made.touch()
        return self._template

    @contextmanager
    def database(self, template: str) -> Iterator[str]:
        """The URL of a clone of the template, dropped at the end whoever is still connected to it."""
        name = f"jobq_test_{uuid4().hex[:16]}"
        self._do("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy", name, template)
        try:
            yield self._url_of(name)
        finally:
            self._drop(name)

    def clean(self) -> None:
        """Drop the template, of a server that goes on."""
        if (self.folder / "template").exists():
            self._drop(self._template)

    def _drop(self, name: str) -> None:
        self._do("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    def _end_connections(self, name: str) -> None:
        """Nobody may be connected to what is cloned, and a migration's engine may have kept a connection."""
        with psycopg.connect(self._plain, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])

    def _do(self, text: LiteralString, *names: str) -> None:
        with psycopg.connect(self._plain, autocommit=True) as connection:
            connection.execute(sql.SQL(text).format(*map(sql.Identifier, names)))

    def _url_of(self, name: str) -> str:
        return sa.make_url(self.url).set(database=name).render_as_string(hide_password=False)


@contextmanager
def server(run: str) -> Iterator[Server]:
    """The server of a run: that of JOBQ_TEST_DATABASE_URL, else an embedded one of the run's own.

    `run` is the same in all processes of a run. Raises: EmbeddedError, where neither is to be had.
    """
    folder = Path(_fast_folder(), f"jobq-pytest-{os.getuid()}-{run}")
    with _shared(folder) as is_last:
        given = os.environ.get(TEST_URL)
        url = _normal(given) if given else embedded.ensure(folder, tcp=True, settings=SETTINGS)
        found = Server(url, run, folder)
        yield found
        if is_last():
            found.clean() if given else embedded.stop(folder)
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _shared(folder: Path) -> Iterator[Callable[[], bool]]:
    """Hold the folder together with other processes; what is yielded tells whether they have all ended."""
    holders = _join(folder)
    try:
        yield lambda: _is_only_one(holders)
    finally:
        os.close(holders)


def _join(folder: Path) -> int:
    """The lock that the holders of the folder share; made anew where the last one has just removed it."""
    while True:
        folder.mkdir(mode=0o711, exist_ok=True)  # for root another account runs the server
        holders = os.open(folder / "holders.lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(holders, fcntl.LOCK_SH)
        if os.fstat(holders).st_nlink:
            return holders
        os.close(holders)


def _is_only_one(holders: int) -> bool:
    try:
        fcntl.flock(holders, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _normal(url: str) -> str:
    return urls.normalize(url).render_as_string(hide_password=False)


def _fast_folder() -> str:
    """A folder in memory, the usual temporary one where memory is scarce."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES:
        return str(MEMORY)
    return tempfile.gettempdir()
