"""Starting the server below a supervisor, which outlives the process that starts it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from jobq.embedded import locks, supervisor
from jobq.embedded.binaries import ENVIRONMENT
from jobq.embedded.home import Home, sockets_of
from jobq.embedded.postmaster import Postmaster, ready
from jobq.errors import EmbeddedError

START_SECONDS = 60.0  # recovery after a crash takes a while
FREE_PORT_TRIES = 5  # a port that was free may be taken until the server asks for it


def launch(home: Home, binaries: Path, *, tcp: bool, linger: float, settings: Mapping[str, str]) -> Postmaster:
    """Start the server and wait until it takes connections; only under the lock `starting`."""
    supervisor.write_linger(home.path, linger)
    said = ""
    for _ in range(FREE_PORT_TRIES):
        sockets = sockets_of(home)
        _supervised(home, _command(binaries, home.data, {**settings, **_listening(sockets, tcp=tcp)}), sockets)
        if found := awaited(home):
            return found
        said = _last_words(home)
        if "could not bind" not in said:
            break
    raise EmbeddedError(f"PostgreSQL did not start in {home.path}: {said} (see {home.log}); or set JOBQ_DATABASE_URL")


def linger_at_least(home: Home, seconds: float) -> None:
    if seconds > supervisor.read_linger(home.path):
        supervisor.write_linger(home.path, seconds)


def _supervised(home: Home, command: list[str], sockets: Path) -> None:
    """Returns when the supervisor has detached itself and holds the lock of the server."""
    data = home.data.resolve()
    order = {
        "home": str(home.path),
        "command": command,
        "run": {"cwd": str(data), "env": ENVIRONMENT, "umask": 0o077, **home.run_as()},
        "sockets": None if sockets == data else str(sockets),
    }
    home.log.unlink(missing_ok=True)
    # 0600: the server writes the statements that fail into it
    with os.fdopen(os.open(home.log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as log, _bounded(home):
        subprocess.run(
            [sys.executable, "-I", "-S", supervisor.__file__, json.dumps(order)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,  # Ctrl-C passes it by
            timeout=START_SECONDS,
            check=False,
        )


def _listening(sockets: Path, *, tcp: bool) -> dict[str, str]:
    tcp_settings = {"listen_addresses": "127.0.0.1", "port": str(_free_port())} if tcp else {"listen_addresses": ""}
    return {"unix_socket_directories": str(sockets), "unix_socket_permissions": "0700", **tcp_settings}


@contextmanager
def _bounded(home: Home) -> Iterator[None]:
    try:
        yield
    except subprocess.TimeoutExpired as error:
        raise EmbeddedError(f"an earlier PostgreSQL in {home.path} does not end; run: jobq db stop") from error


def _command(binaries: Path, data: Path, settings: Mapping[str, str]) -> list[str]:
    options = (part for name, value in settings.items() for part in ("-c", f"{name}={value}"))
    return [str(binaries / "postgres"), "-D", str(data.resolve()), *options]


def awaited(home: Home) -> Postmaster | None:
    """The server, once it takes connections; None when there is none, it ends instead, or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while (found := ready(home)) is None:
        if time.monotonic() > deadline or not locks.is_up(home.path):
            return None
        time.sleep(0.01)
    return found


def _last_words(home: Home) -> str:
    lines = home.log.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
    telling = [line for line in lines if "FATAL" in line or "could not" in line or "HINT" in line]
    return "; ".join(telling or lines[-1:])[:600]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
