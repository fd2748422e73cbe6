"""A real PgBouncer in transaction mode before the server of the test run, with few connections to share."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from jobq.embedded.account import server_account

START_SECONDS = 30.0
POOL_SIZE = 2  # connections to the server, for each database: so few that clients have to share
SETTINGS = """
[databases]
* = host={host} port={port} user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 200
server_login_retry = 1
"""


def binary() -> str | None:
    """Where the program is, also where only root looks for it."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")


@contextmanager
def bouncer(server: sa.URL, *, port: int | None = None, size: int = POOL_SIZE) -> Iterator[int]:
    """The port of a PgBouncer in front of the server: a free one, if none is given."""
    program, account, port = binary(), server_account(), port or _free_port()
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="jobq-pooler-") as folder:
        file = Path(folder, "pgbouncer.ini")
        parts = {"host": server.host, "port": server.port, "user": server.username, "password": server.password}
        file.write_text(SETTINGS.format(**parts, own_port=port, size=size))
        log = Path(folder, "log")
        if account is not None:  # it refuses to be run by root
            os.chown(folder, account.uid, account.gid)
        with log.open("wb") as said:
            pipes = {"stdin": subprocess.DEVNULL, "stdout": said, "stderr": said}
            run_as = {} if account is None else account.run_as()
            process = subprocess.Popen([program, str(file)], **pipes, **run_as)
        try:
            _await(port, process, log)
            yield port
        finally:
            process.kill()
            process.wait()


def through(url: str, port: int) -> str:
    """The same database, by way of the pooler at this port."""
    return sa.make_url(url).set(port=port).render_as_string(hide_password=False)


def _await(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.01)
        else:
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
