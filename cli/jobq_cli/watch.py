"""Looking again and again, as `jobq stats --watch` and `jobq top` do."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeAlias

import sqlalchemy as sa

Wait: TypeAlias = Callable[[float], bool]  # for so many seconds; True: that was all
QUIT = b"qQ"
DISABLED = b"\x00"


def again(connection: sa.Connection, every: timedelta, wait: Wait | None = None) -> Iterator[None]:
    """Once, and after each span once more; no transaction is open meanwhile, or old rows could not be cleaned away."""
    while True:
        yield
        connection.rollback()
        if (wait or _sleep)(every.total_seconds()):
            return


@contextmanager
def keys() -> Iterator[Wait]:
    """Waiting that a q ends, and that a change of the terminal's size cuts short; plain sleep without a keyboard."""
    if not sys.stdin or not sys.stdin.isatty():
        yield _sleep
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    with _signals() as signals, _resizes():
        try:
            tty.setcbreak(keyboard, termios.TCSANOW)
            _disable_suspending(keyboard)
            yield lambda seconds: _wait(keyboard, signals, seconds)
        finally:
            termios.tcsetattr(keyboard, termios.TCSANOW, before)


def _sleep(seconds: float) -> bool:
    """Not time.sleep: that, and any other call, sleeps on when a signal comes right before it. See `_signals`."""
    with _signals() as signals:
        select.select([signals], [], [], seconds)
    return False


def _wait(keyboard: int, signals: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([keyboard, signals], [], [], left)
        if signals in ready:
            os.read(signals, 1024)
            return False
        if keyboard in ready and _is_quit(os.read(keyboard, 1024)):
            return True
    return False


def _is_quit(typed: bytes) -> bool:
    """Also where the terminal is gone."""
    return not typed or any(key in QUIT for key in typed)


def _disable_suspending(keyboard: int) -> None:
    """Ctrl-Z would leave the shell on our screen, without a cursor."""
    attributes = termios.tcgetattr(keyboard)
    attributes[6][termios.VSUSP] = DISABLED
    termios.tcsetattr(keyboard, termios.TCSANOW, attributes)


@contextmanager
def _signals() -> Iterator[int]:
    """A descriptor that can be read once a signal has come, whenever it came."""
    out, into = os.pipe()
    os.set_blocking(into, False)
    before = signal.set_wakeup_fd(into, warn_on_full_buffer=False)
    try:
        yield out
    finally:
        signal.set_wakeup_fd(before)
        os.close(out)
        os.close(into)


@contextmanager
def _resizes() -> Iterator[None]:
    """Let a change of the terminal's size be a signal that comes; by default it is ignored."""
    before = signal.signal(signal.SIGWINCH, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
