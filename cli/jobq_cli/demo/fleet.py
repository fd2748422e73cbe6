"""The demo's workers: real processes of `jobq run`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Self

import sqlalchemy as sa

from jobq_cli.demo.pace import Pace
from jobq_cli.failures import Failed

APP = "jobq_cli.demo.shop:app"
LEASE_SECONDS = 3
CONCURRENCY = 4
STOP_SECONDS = (8.0, 5.0)  # after the first signal and after the second; then the process is killed


@dataclass(slots=True)
class Member:
    """A worker's process and its log; `killed`: by us, with SIGKILL."""

    name: str
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    killed: bool = False

    def last_words(self) -> str:
        """The message of the last line of its log."""
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines() or ["it said nothing"]
        try:
            return str(json.loads(lines[-1])["message"])
        except (ValueError, KeyError, TypeError):
            return lines[-1]


class Fleet:
    """Starts workers, kills one, and leaves none behind, whatever happens."""

    def __init__(self, url: sa.URL, pace: Pace) -> None:
        self._environment = {
            **os.environ,
            **pace.environment(),
            "JOBQ_DATABASE_URL": url.render_as_string(hide_password=False),
        }
        self.members: dict[str, Member] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, name: str) -> None:
        # Its stdin is a pipe from here: the worker sees its end, and stops, also when this process is killed.
        options: dict[str, Any] = {"concurrency": CONCURRENCY, "lease": LEASE_SECONDS, "grace": LEASE_SECONDS}
        flags = [f"--{option}={value}" for option, value in options.items()]
        command = [sys.executable, "-P", "-m", "jobq", "run", APP, "--isolated", f"--name={name}", "--log=json", *flags]
        log = tempfile.TemporaryFile()  # noqa: SIM115  # closed in stop
        process = subprocess.Popen(
            command, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log
        )
        self.members[name] = Member(name, process, log)

    def kill(self, name: str) -> int:
        """End a worker with SIGKILL, in the middle of what it does; returns its process id."""
        member = self.members[name]
        member.killed = True
        member.process.kill()
        member.process.wait()
        return member.process.pid

    def running(self) -> list[str]:
        """The names of those that were not killed."""
        return [member.name for member in self.members.values() if not member.killed]

    def check(self) -> None:
        """Raises: Failed, when a worker has ended that nobody told to."""
        for member in self.members.values():
            code = member.process.poll()
            if code is not None and not member.killed:
                raise Failed(f"worker {member.name} ended by itself with {code}: {member.last_words()}")

    def stop(self) -> None:
        """End those that run: a signal, a second one, a kill."""
        for seconds in STOP_SECONDS:
            for member in self.members.values():
                if member.process.poll() is None:
                    member.process.send_signal(signal.SIGTERM)
            for member in self.members.values():
                with suppress(subprocess.TimeoutExpired):
                    member.process.wait(seconds)
        for member in self.members.values():
            if member.process.poll() is None:
                member.process.kill()
                member.process.wait()
            if member.process.stdin:
                member.process.stdin.close()
            member.log.close()
