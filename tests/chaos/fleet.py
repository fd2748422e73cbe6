"""Real worker processes, started by `jobq run` as people start them, and ended whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil

HERE = Path(__file__).parent
PATIENCE_SECONDS = 20.0  # far more than anything takes that has no limit of its own: the machine may be busy
AT_WORK = " is at work as "
LOST = "the database cannot be used"
BACK = "the database can be used again"
T = TypeVar("T")


@dataclass(eq=False)
class Member:
    """One worker process and its log."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def cpu_seconds(self) -> float:
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)

    def send(self, number: signal.Signals) -> float:
        """Send a signal; the moment of it."""
        self.process.send_signal(number)
        return time.monotonic()

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.process.wait()

    def freeze(self) -> None:
        """Returns when the kernel has stopped it."""
        self.send(signal.SIGSTOP)
        self.until_frozen()

    def until_frozen(self) -> None:
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def thaw(self) -> None:
        self.send(signal.SIGCONT)

    def ends(self, within: float = PATIENCE_SECONDS) -> int:
        """Its exit code (minus the signal that killed it), once it has ended."""
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"worker {self.pid} still runs after {within:.1f} s:\n{self.said}") from None

    def cpu_seconds_at_end(self, within: float) -> float:
        """What it has used in all; it has to end within the time, and stays to be waited for."""
        until(
            lambda: psutil.Process(self.pid).status() == psutil.STATUS_ZOMBIE, f"the end of {self.pid}", within=within
        )
        return self.cpu_seconds

    def count(self, words: str) -> int:
        """How many lines of its log hold the words."""
        return sum(words in line for line in self.said.splitlines())

    def until_said(self, words: str, times: int = 1, within: float = PATIENCE_SECONDS) -> None:
        until(lambda: self.count(words) >= times, f"worker {self.pid} saying {words!r}", within=within, also=self)

    def stats(self) -> dict[str, Any]:
        """Its `worker.stats()`."""
        path = self.log.with_suffix(".stats")
        path.unlink(missing_ok=True)
        self.send(signal.SIGUSR1)
        until(path.exists, f"the numbers of worker {self.pid}", also=self)
        return dict(json.loads(path.read_text()))


@dataclass(eq=False)
class Fleet:
    """Starts workers on a database. `url` and `ledger_url` differ where a proxy stands in between."""

    url: str
    ledger_url: str
    folder: Path
    members: list[Member] = field(default_factory=list)

    def start(
        self,
        *,
        url: str | None = None,
        is_ready: bool = True,
        app: str = "apps:app",
        env: Mapping[str, str] | None = None,
        **options: object,
    ) -> Member:
        """A worker with options as on the command line, by default once it is at work."""
        log = self.folder / f"worker{len(self.members)}.log"
        environment = {
            **os.environ,
            "JOBQ_DATABASE_URL": url or self.url,
            "CHAOS_LEDGER_URL": self.ledger_url.replace("+psycopg", ""),
            "CHAOS_STATS": str(log.with_suffix(".stats")),
            **(env or {}),
        }
        named = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
        given = [name if value is True else f"{name}={value}" for name, value in named.items()]
        command = [sys.executable, "process.py", "run", app, *given]
        with log.open("wb") as file:
            pipes = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": file}
            process = subprocess.Popen(command, cwd=HERE, env=environment, start_new_session=True, **pipes)
        member = Member(process, log)
        self.members.append(member)
        if is_ready:
            member.until_said(AT_WORK)
        return member

    def start_many(self, number: int, **options: object) -> list[Member]:
        """Several with the same options, once all of them are at work."""
        started = [self.start(is_ready=False, **options) for _ in range(number)]
        for member in started:
            member.until_said(AT_WORK)
        return started

    @property
    def living(self) -> dict[int, Member]:
        return {member.pid: member for member in self.members if member.is_alive}

    def end(self) -> None:
        """Nothing may outlive a test: SIGKILL ends stopped processes too."""
        for member in self.members:
            with suppress(ProcessLookupError):
                member.kill()


@contextmanager
def fleet_on(url: str, folder: Path, *, ledger_url: str | None = None) -> Iterator[Fleet]:
    fleet = Fleet(url, ledger_url or url, folder)
    try:
        yield fleet
    finally:
        fleet.end()


def until(look: Callable[[], T], what: str, *, within: float = PATIENCE_SECONDS, also: Member | None = None) -> T:
    """The first true answer of `look`."""
    deadline = time.monotonic() + within
    while not (answer := look()):
        if time.monotonic() > deadline:
            log = f"; its log:\n{also.said}" if also is not None else ""
            raise AssertionError(f"waited {within:.1f} s in vain for {what}{log}")
        if also is not None and not also.is_alive:
            raise AssertionError(f"worker {also.pid} ended with {also.process.returncode}:\n{also.said}")
        time.sleep(0.01)
    return answer


def wait_out(seconds: float) -> None:
    """An outage has a length, a kill its moment: here there is nothing to wait for."""
    time.sleep(seconds)
