"""One server for each directory, started on demand and shared by every process that asks for it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from jobq.embedded import locks
from jobq.embedded.binaries import usable_binaries
from jobq.embedded.cluster import make_cluster
from jobq.embedded.home import Home, home_of
from jobq.embedded.launch import awaited, launch, linger_at_least
from jobq.embedded.postmaster import read_postmaster, ready, url_of
from jobq.errors import EmbeddedError

STOP_SECONDS = 30.0


def ensure(
    directory: str | Path, *, tcp: bool = False, linger: float = 5.0, settings: Mapping[str, str] | None = None
) -> str:
    """The URL of the server that keeps its data in `directory`, started unless it runs.

    It runs until this process and all others that asked for it have ended, and then for `linger` seconds more:
    the longest that anybody asked for since it started; `math.inf` is until `stop`. It listens on a socket that
    only this user can reach, with `tcp` also on 127.0.0.1, with a password. `settings` are those of postgresql.conf,
    for the one who starts it. For root another account runs it, and where that cannot enter `directory` the data
    is below /var/lib/jobq.

    Raises: EmbeddedError, when it cannot run here.
    """
    if not linger >= 0:
        raise EmbeddedError(f"linger must be seconds from 0, not {linger}")
    home = home_of(directory)
    home.make()
    with _refused_by_the_system(home):
        locks.join(home.path)
        with locks.exclusive(locks.starting(home.path)):
            return _started(home, tcp=tcp, linger=linger, settings=settings or {})


def running(directory: str | Path, *, tcp: bool = False) -> str | None:
    """The URL of the server of `directory`, None unless it takes connections (with `tcp`: on TCP)."""
    home = home_of(directory)
    found = ready(home)
    if found is None or (tcp and not found.address):
        return None
    return url_of(home, found, tcp=tcp)


def stop(directory: str | Path) -> bool:
    """End the server of `directory`, also when it is in use; False when there was none."""
    home = home_of(directory)
    if not os.path.isdir(home.data):
        return False
    with _refused_by_the_system(home), locks.exclusive(locks.starting(home.path)):
        locks.leave(home.path)
        if not locks.is_up(home.path):
            return False
        for how in (signal.SIGINT, signal.SIGQUIT):  # a fast shutdown, then an immediate one
            if _signalled(home, how):
                return True
    raise EmbeddedError(f"the PostgreSQL in {home.path} does not stop; see {home.log}")


def _started(home: Home, *, tcp: bool, linger: float, settings: Mapping[str, str]) -> str:
    if found := awaited(home):  # whoever started it may be gone before it was ready
        linger_at_least(home, linger)
    else:
        binaries = usable_binaries(home)
        make_cluster(home, binaries, fsync=settings.get("fsync") != "off")
        found = launch(home, binaries, tcp=tcp, linger=linger, settings=settings)
    if tcp and not found.address:
        raise EmbeddedError(f"the PostgreSQL in {home.path} runs without TCP; stop it first (jobq db stop)")
    return url_of(home, found, tcp=tcp)


def _signalled(home: Home, how: signal.Signals) -> bool:
    """Whether the server is gone soon after the signal."""
    if found := read_postmaster(home.data):
        with suppress(ProcessLookupError):  # it is about to be gone
            os.kill(found.pid, how)
    deadline = time.monotonic() + STOP_SECONDS
    while up := locks.is_up(home.path):
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return not up


@contextmanager
def _refused_by_the_system(home: Home) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EmbeddedError(f"cannot keep a PostgreSQL in {home.path}: {error}; set JOBQ_DATABASE_URL") from error
