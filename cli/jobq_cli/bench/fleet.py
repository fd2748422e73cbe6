"""Worker processes: `jobq run`, as anybody runs it, with its metrics on a port and its log in a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import IO

import sqlalchemy as sa

from jobq_cli.bench.probe import VARIABLE
from jobq_cli.failures import Failed

APP = "jobq_cli.bench.app:app"
STOP_SECONDS = 20.0


@dataclass(slots=True)
class Fleet:
    """Some workers that run, and what they write."""

    processes: list[subprocess.Popen[bytes]]
    log: IO[bytes]

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    @property
    def lines(self) -> int:
        """How many lines of log they have written so far."""
        return self._said().count(b"\n")

    def check(self) -> None:
        """Raises: Failed, when one of them has ended."""
        for process in self.processes:
            if process.poll() is not None:
                last = self._said().decode(errors="replace").strip().splitlines() or ["it said nothing"]
                raise Failed(f"a worker ended with {process.returncode}: {last[-1]}")

    def _said(self) -> bytes:
        self.log.flush()
        size = os.fstat(self.log.fileno()).st_size
        return os.pread(self.log.fileno(), size, 0)


@cache
def has_metrics() -> bool:
    """Whether workers count for a scraper: not where the extra for that is missing."""
    try:
        import prometheus_client  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


@contextmanager
def working(
    engine: sa.Engine, probe: str, *, number: int = 1, concurrency: int, app: str = APP, options: tuple[str, ...] = ()
) -> Iterator[Fleet]:
    """So many processes, which end with the context."""
    url = engine.url.render_as_string(hide_password=False)
    environment = {**os.environ, "JOBQ_DATABASE_URL": url, VARIABLE: probe}
    metrics = ["--metrics-port=0"] if has_metrics() else []  # 0: a free one
    flags = ["--isolated", f"--concurrency={concurrency}", *metrics, *options]
    command = [sys.executable, "-P", "-m", "jobq", "run", app, *flags]
    with tempfile.TemporaryFile() as log:
        # Their stdin is a pipe from here: they see its end, and stop, also when this process is killed.
        processes = [
            subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log)
            for _ in range(number)
        ]
        try:
            yield Fleet(processes, log)
        finally:
            _stop(processes)


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.send_signal(signal.SIGTERM)
    until = time.monotonic() + STOP_SECONDS
    for process in processes:
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin:
            process.stdin.close()
