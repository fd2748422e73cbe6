"""Locks between processes. The kernel drops those of a process that ends, killed or not.

`users` is held shared by every process that uses the server, and exclusively by a supervisor that stops it.
`start` is held while somebody starts or stops the server. `server` is held by the supervisor and, inherited,
by every process of PostgreSQL, so that it is free if, and only if, nothing of the server is left.
Order: users before start.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

_held: dict[Path, int] = {}  # the file descriptor of the lock that this process holds as a user of each home
_guard = Lock()


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Wait for the lock at `path` and hold it."""
    with _opened(path) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def starting(home: Path) -> Path:
    return home / "start.lock"


def is_up(home: Path) -> bool:
    """Whether anything of the server is left. Only under `starting`: to ask is to hold the lock for a moment."""
    with _opened(home / "server.lock") as lock, suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    return True


def join(home: Path) -> None:
    """Become a user of the server, until this process ends; waits while a supervisor is stopping it."""
    with _guard:
        if home in _held and os.fstat(_held[home]).st_nlink == 0:  # somebody deleted the directory
            os.close(_held.pop(home))
        if home not in _held:
            users = os.open(home / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(users, fcntl.LOCK_SH)
            _held[home] = users
        now = time.time_ns()
        os.utime(_held[home], ns=(now, now))  # tells the supervisor of a user that came and went


def leave(home: Path) -> None:
    with _guard, suppress(KeyError):
        os.close(_held.pop(home))


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield lock
    finally:
        os.close(lock)
