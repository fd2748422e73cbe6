"""A command line of the documents as a real process: what it says is waited for, and it never outlives the test."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

AT_WORK = "is at work as"
NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL")  # its command is process 1


@dataclass
class Running:
    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)

    def until(self, text: str) -> str:
        """The next line that holds `text`."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            if text in line:
                return self.lines[-1]
        raise AssertionError(f"ended without saying {text!r}:\n" + "\n".join(self.lines))

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """The exit code, as a shell tells it, of a process that is sent a signal."""
        self.process.send_signal(number)
        return self.ends()

    def ends(self) -> int:
        self.lines += self.process.communicate(timeout=60)[1].splitlines()
        code = self.process.returncode
        return code if code >= 0 else 128 - code


@contextmanager
def running(line: str | Sequence[str], folder: Path, url: str, *, first: bool = False) -> Iterator[Running]:
    """The command line, in `folder`; `first`: as process 1, where that is allowed."""
    command = [
        *(NAMESPACE if first and can_have_namespaces() else ()),
        *(shlex.split(line) if isinstance(line, str) else line),
    ]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=folder, env=environment(url), text=True, **pipes) as process:
        try:
            yield Running(process)
        finally:
            process.kill()


def environment(url: str) -> dict[str, str]:
    """With the `jobq` of this Python in front of all others."""
    inherited = {name: value for name, value in os.environ.items() if name != "JOBQ_DATABASE_URL"}
    return {**inherited, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "DATABASE_URL": url}


def can_have_namespaces() -> bool:
    """As root on Linux."""
    try:
        return subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False
