"""The data directory: made by initdb, with a password for those who come over TCP.

It has a name that is never used again, and `data` links to it. Where somebody deletes the directory of a server that
still runs and starts a new one there, the old server writes its pg_control, by its full path, at its next checkpoint:
that must not be the file of the new server.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from pathlib import Path

from jobq.embedded.binaries import ENVIRONMENT, major_of
from jobq.embedded.home import Home
from jobq.embedded.postmaster import USER
from jobq.errors import EmbeddedError

# The socket lies in a 0700 directory: who reaches it may use it. TCP is open to every user of the machine.
FLAGS = ("-U", USER, "--auth-local=trust", "--auth-host=scram-sha-256", "-E", "UTF8", "--no-locale")


def make_cluster(home: Home, binaries: Path, *, fsync: bool) -> None:
    """Make the data directory unless it is there. Raises EmbeddedError when it is of another major version."""
    major = major_of(binaries, home)
    if not home.data.exists():
        _initdb(home, binaries, fsync=fsync)
    made_by = (home.data / "PG_VERSION").read_text().strip()
    if made_by != major:
        raise EmbeddedError(
            f"{home.data} is of PostgreSQL {made_by}, but {binaries} has {major};"
            f" point JOBQ_PG_BIN at a PostgreSQL {made_by}, or delete {home.path} and what is stored in it"
        )


def _initdb(home: Home, binaries: Path, *, fsync: bool) -> None:
    for unfinished in home.path.glob("data-*"):  # a killed initdb leaves a directory that looks whole
        shutil.rmtree(unfinished)
    data = home.make_private(home.path / f"data-{secrets.token_hex(4)}")
    _write_password(home)
    command = [str(binaries / "initdb"), "-D", str(data), *FLAGS, f"--pwfile={home.password}"]
    if not fsync:
        command.append("--no-sync")
    made = subprocess.run(
        command, capture_output=True, text=True, cwd=home.path, env=ENVIRONMENT, umask=0o077, **home.run_as()
    )
    if made.returncode:
        why = "; ".join(made.stderr.strip().splitlines()[-3:])
        raise EmbeddedError(f"cannot make a database in {home.path}: {why}; free the folder, or set JOBQ_DATABASE_URL")
    home.data.unlink(missing_ok=True)
    home.data.symlink_to(data.name)


def _write_password(home: Home) -> None:
    home.password.unlink(missing_ok=True)
    file = os.open(home.password, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(file, "w") as password:
        password.write(secrets.token_urlsafe(24))
    home.hand_over(home.password)
