"""A Dask cluster of real processes on this machine, that a test can kill and bring back."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

HERE = Path(__file__).parent
PATIENCE_SECONDS = 40.0  # a Dask worker gives what still runs in it 30 s


class Nodes:
    """A scheduler at one address for all of its lives, and workers: `pids` by their addresses."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        command = [sys.executable, str(HERE / "node.py")]
        self._maker = subprocess.Popen(command, env=environment, start_new_session=True, **pipes)  # type: ignore[call-overload]
        self.pids: dict[str, int] = {}
        self.start_scheduler()

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def start_scheduler(self) -> None:
        self._scheduler, _ = self._make("scheduler", self.port)

    def revive(self) -> None:
        """Have a scheduler, whatever a test before has left."""
        if not psutil.pid_exists(self._scheduler):
            self.start_scheduler()

    def add_worker(self, threads: int = 1, resources: str = "") -> str:
        """Its address, once it is of the cluster."""
        pid, address = self._make("worker", self.address, threads, resources)
        self.pids[address] = pid
        return address

    def freeze_worker(self, address: str) -> None:
        os.kill(self.pids[address], signal.SIGSTOP)

    def kill_worker(self, address: str) -> None:
        _kill(self.pids.pop(address))

    def kill_scheduler(self) -> None:
        _kill(self._scheduler)

    def dead_workers(self) -> set[str]:
        return {address for address, pid in self.pids.items() if not psutil.pid_exists(pid)}

    def until_workers_ended(self) -> None:
        """By themselves."""
        for pid in self.pids.values():
            _until_gone(pid)
        self.pids.clear()

    def end_workers(self) -> None:
        for address in list(self.pids):
            self.kill_worker(address)

    def end(self) -> None:
        self._maker.communicate()  # it ends with its input
        for pid in (*self.pids.values(), self._scheduler):
            _kill(pid)

    def _make(self, *words: object) -> tuple[int, str]:
        assert self._maker.stdin is not None
        assert self._maker.stdout is not None
        print(*words, file=self._maker.stdin, flush=True)
        pid, _, address = self._maker.stdout.readline().strip().partition(" ")
        assert address, f"{words} has ended"
        return int(pid), address


@contextmanager
def nodes() -> Iterator[Nodes]:
    made = Nodes()
    try:
        yield made
    finally:
        made.end()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _until_gone(pid)


def _until_gone(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while psutil.pid_exists(pid):
        assert time.monotonic() < deadline, f"process {pid} does not end"
        time.sleep(0.01)
