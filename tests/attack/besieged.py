"""A PostgreSQL that a test may stop, crash, crowd, lock and shrink; it comes back at the same address."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from fleet import until
from psycopg import sql

import jobq
from jobq import embedded
from jobq.embedded import locks
from jobq.embedded.home import Home, home_of
from jobq.embedded.postmaster import read_postmaster
from jobq.errors import EmbeddedError

MEMORY = Path("/dev/shm")
PAGE = 4096
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "40",
    "min_wal_size": "32MB",
    "max_wal_size": "64MB",
    "timezone": "UTC",
}


@dataclass
class Besieged:
    """`settings` hold from the next start on."""

    directory: Path
    settings: dict[str, str] = field(default_factory=lambda: dict(SETTINGS))
    url: str = ""

    def start(self) -> None:
        """Recovers first, if need be; a crashed server's processes may take a moment to be gone."""
        self.url = until(self._try, "the server's return")

    def _try(self) -> str | None:
        try:
            return embedded.ensure(self.directory, settings=self.settings)
        except EmbeddedError:
            return None

    def stop(self) -> None:
        """As an administrator would."""
        embedded.stop(self.directory)

    def end_at_once(self) -> None:
        """An immediate shutdown: every session is told, nothing is written back."""
        self._signal(signal.SIGQUIT)

    def kill(self) -> None:
        """The postmaster is gone; its children notice by themselves."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        found = read_postmaster(self.home.data)
        assert found is not None
        os.kill(found.pid, number)
        until(lambda: not locks.is_up(self.home.path), "the end of the server")

    @property
    def home(self) -> Home:
        return home_of(self.directory)

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.url.replace("+psycopg", ""), autocommit=True, options="-c statement_timeout=0")

    def another(self, name: str) -> str:
        """The URL of one more database, with the tables of jobq."""
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        url = sa.make_url(self.url).set(database=name).render_as_string(hide_password=False)
        jobq.migrate(url)
        return url


@contextmanager
def besieged_in(folder: Path, **settings: str) -> Iterator[Besieged]:
    """A server in a folder, with the tables of jobq."""
    folder.chmod(0o711)  # for root another account runs the server
    server = Besieged(folder, {**SETTINGS, **settings})
    try:
        server.start()
        jobq.migrate(server.url)
        yield server
    finally:
        embedded.stop(folder)


@contextmanager
def memory_folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="jobq-siege-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """A folder that holds so much and no more. Skips where nothing can be mounted."""
    with memory_folder() as folder:
        options = f"size={megabytes}m,mode=0711"
        mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("a small tmpfs cannot be mounted here (that takes root)")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """No byte is left on the disk of a folder for the block."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(PAGE)):
            pass
    try:
        yield
    finally:
        filler.unlink()
