"""The database that the queues take turns in, and what its server is set to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql

from jobq import embedded
from jobq_cli.bench import machine

SETTINGS = ("server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size")
FOLDER = Path(".bench") / "server"


@contextmanager
def database(given: str | None) -> Iterator[str]:
    """The one given; else a fresh one on an embedded server, on TCP, so that any driver can connect."""
    if given is not None:
        yield given.replace("postgresql+psycopg://", "postgresql://")
        return
    FOLDER.parent.mkdir(exist_ok=True)
    server = embedded.ensure(FOLDER.absolute(), tcp=True).replace("+psycopg", "")
    name = sql.Identifier(f"bench_{uuid4().hex[:12]}")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            yield server.rpartition("/")[0] + "/" + name.as_string(connection).strip('"')
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def facts(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """What figures depend on: the day, the machine, the server."""
    found = {"date": f"{datetime.now(UTC):%Y-%m-%d}"}
    found |= {name: str(value) for name, value in machine.kind().items()}
    for name in SETTINGS:
        (value,) = connection.execute("SELECT current_setting(%s)", [name]).fetchone() or ("",)
        found[name] = str(value)
    return found
