"""Where the files of an embedded server are."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jobq.embedded.account import Account, RunAs, server_account
from jobq.errors import EmbeddedError

ROOT_HOME = Path("/var/lib/jobq")  # for root: the account that runs the server cannot look into root's home
LONGEST_SOCKET_PATH = 103  # bytes: macOS allows 103, Linux 107
PROJECT_MARKS = ("pyproject.toml", ".git")


@dataclass(frozen=True)
class Home:
    """The directory of one server; `account` runs it, None where the caller does."""

    path: Path
    account: Account | None

    @property
    def data(self) -> Path:
        """A link to the data directory, see cluster.py."""
        return self.path / "data"

    @property
    def log(self) -> Path:
        return self.path / "server.log"

    @property
    def password(self) -> Path:
        return self.path / "password"

    def run_as(self) -> RunAs:
        return self.account.run_as() if self.account else {}

    def make(self) -> None:
        """Make the directory; the account may pass through it, but only the caller may look or write."""
        try:
            for directory in reversed([self.path, *self.path.parents]):
                if not directory.is_dir():
                    directory.mkdir(0o711 if self.account else 0o700, exist_ok=True)
                    _let_through(directory, self.account)
            _let_through(self.path, self.account)
        except OSError as error:
            raise EmbeddedError(
                f"cannot keep a PostgreSQL in {self.path}: {error.strerror};"
                " point XDG_DATA_HOME at a folder that can be written, or set JOBQ_DATABASE_URL"
            ) from error

    def make_private(self, directory: Path) -> Path:
        """Make a directory that only the account that runs the server (and root) can enter."""
        directory.mkdir(0o700, exist_ok=True)
        self.hand_over(directory)
        return directory

    def hand_over(self, path: Path) -> None:
        if self.account:
            os.chown(path, self.account.uid, self.account.gid)


def home_of(directory: str | Path) -> Home:
    """The home of the server of `directory`: that itself, or for root a place that the account can reach."""
    path = Path(os.path.realpath(Path(directory).expanduser()))
    account = server_account()
    if account and not account.can_reach(path):
        path = ROOT_HOME / _name(path)
    return Home(path, account)


def project_directory() -> Path:
    """Where the server of this project keeps its data: one directory for each project folder.

    The project folder is the nearest one upwards with a pyproject.toml or .git, else the working directory.
    """
    here = Path.cwd()
    marked = (
        folder for folder in (here, *here.parents) if any(os.path.exists(folder / mark) for mark in PROJECT_MARKS)
    )
    return _data_folder() / _name(next(marked, here))


def sockets_of(home: Home) -> Path:
    """A 0700 directory for the socket: the data directory, unless that makes the socket's path too long."""
    data = home.data.resolve()
    if _is_short(data):
        return data
    for folder in _temporary_folders():
        try:
            made = Path(tempfile.mkdtemp(prefix="jobq-", dir=folder))
        except OSError:
            continue
        if _is_short(made) and (home.account is None or home.account.can_reach(made)):
            home.hand_over(made)
            return made
        made.rmdir()
    raise EmbeddedError(
        f"the path {data} is too long for a socket, and no shorter temporary folder can be written;"
        " point XDG_DATA_HOME at a folder with a shorter path, or set JOBQ_DATABASE_URL"
    )


def _data_folder() -> Path:
    chosen = Path(os.environ.get("XDG_DATA_HOME", ""))
    if chosen.is_absolute():  # its specification: a relative one is to be ignored
        return chosen / "jobq"
    if os.geteuid() == 0:
        return ROOT_HOME
    try:
        return Path.home() / ".local/share/jobq"
    except RuntimeError as error:
        raise EmbeddedError(
            "this user has no home folder to keep a PostgreSQL in; set HOME or XDG_DATA_HOME"
        ) from error


def _name(folder: Path) -> str:
    return f"{folder.name or 'root'}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:10]}"


def _let_through(directory: Path, account: Account | None) -> None:
    mode = directory.stat().st_mode
    if account and not mode & 0o001:
        directory.chmod(mode & 0o7777 | 0o001)


def _is_short(sockets: Path) -> bool:
    return len(os.fsencode(sockets / ".s.PGSQL.65535.lock")) <= LONGEST_SOCKET_PATH


def _temporary_folders() -> Iterator[str]:
    yield "/tmp"
    yield tempfile.gettempdir()
