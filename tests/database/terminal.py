"""Commands on a terminal of their own, for tests."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from dataclasses import dataclass

SIZE = (24, 80)  # lines, columns


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to a command once it has written `text` so often: keys are typed, a signal comes, its size changes.

    A command with keys has the terminal as stdin too.
    """

    text: str
    times: int = 1
    keys: bytes = b""
    signal: signal.Signals | None = None
    size: tuple[int, int] | None = None


def on_a_terminal(*arguments: str, steps: Sequence[Step] = (), size: tuple[int, int] = SIZE) -> tuple[int, str]:
    """Run a command whose stdout and stderr are a terminal: its exit code, and what it wrote there."""
    ours, theirs = pty.openpty()
    resize(ours, size)
    stdin = theirs if any(step.keys for step in steps) else subprocess.DEVNULL
    process = subprocess.Popen([sys.executable, "-m", "jobq", *arguments], stdin=stdin, stdout=theirs, stderr=theirs)
    os.close(theirs)
    written, left = "", list(steps)
    while part := read(ours):
        written += part
        while left and written.count(left[0].text) >= left[0].times:
            _take(left.pop(0), process, ours)
    os.close(ours)
    return process.wait(30), written


def resize(terminal: int, size: tuple[int, int]) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))


def read(terminal: int) -> str:
    try:
        return os.read(terminal, 1 << 16).decode(errors="replace")
    except OSError:  # the terminal's other end is closed
        return ""


def _take(step: Step, process: subprocess.Popen[bytes], terminal: int) -> None:
    if step.size is not None:
        resize(terminal, step.size)
    if step.keys:
        os.write(terminal, step.keys)
    if step.signal is not None:
        process.send_signal(step.signal)
