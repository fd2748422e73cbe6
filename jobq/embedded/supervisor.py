"""Run a server as a child, and stop it when nobody uses it any more. The standard library only: it starts at once.

It runs as a script, in a process of its own, which detaches itself from the one that starts it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

FOREVER = 3e9  # seconds; the clock of the system takes no infinity
STOP_SECONDS = 30.0


def read_linger(home: Path) -> float:
    try:
        return float((home / "linger").read_text())
    except FileNotFoundError:  # the directory was deleted
        return 0.0


def write_linger(home: Path, seconds: float) -> None:
    new = home / "linger.new"
    new.write_text(str(min(seconds, FOREVER)))
    new.rename(home / "linger")  # the supervisor may read it at any time


def main(order: dict[str, Any]) -> None:
    home = Path(order["home"])
    lock = os.open(home / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)  # waits for the last process of an earlier server
    if os.fork() == 0:
        forget_dead_server(home / "data")
        supervise(order, home, lock)


def supervise(order: dict[str, Any], home: Path, lock: int) -> None:
    users = os.open(home / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
    # The server inherits the lock: it is held for as long as any of its processes lives, also if this one is killed.
    server = subprocess.Popen(order["command"], pass_fds=[lock], **order["run"])
    signal.signal(signal.SIGTERM, lambda *_: server.send_signal(signal.SIGINT))
    # A thread, because both waits block in the kernel: for the end of the server, and for the end of its last user.
    threading.Thread(target=stop_when_unused, args=[server, home, users], daemon=True).start()
    server.wait()
    if order["sockets"]:
        shutil.rmtree(order["sockets"], ignore_errors=True)


def stop_when_unused(server: subprocess.Popen[bytes], home: Path, users: int) -> None:
    while not is_left_alone(home, users):
        pass
    # The lock is kept: whoever comes now waits until this process has ended, then starts the server anew.
    server.send_signal(signal.SIGINT)  # a fast shutdown
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.send_signal(signal.SIGQUIT)  # an immediate one; the next start recovers


def is_left_alone(home: Path, users: int) -> bool:
    """Wait until the last user is gone and `linger` is over; True, with the lock held, when nobody came meanwhile."""
    fcntl.flock(users, fcntl.LOCK_EX)
    last_joined = os.fstat(users).st_mtime_ns
    fcntl.flock(users, fcntl.LOCK_UN)
    time.sleep(read_linger(home))
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(users).st_mtime_ns == last_joined
    return False


def forget_dead_server(data: Path) -> None:
    """Remove a postmaster.pid whose number another program has by now: PostgreSQL would refuse to start.

    After a crash of the machine, or in a new container, that is likely. A server works in its data directory.
    """
    with contextlib.suppress(OSError, IndexError):
        pid = (data / "postmaster.pid").read_text().splitlines()[0]
        if os.readlink(f"/proc/{pid}/cwd") != os.path.realpath(data):
            (data / "postmaster.pid").unlink()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
