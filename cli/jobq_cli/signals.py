"""What ends a command from outside: SIGTERM as Ctrl-C does, and at the very end a clock.

Without a handler the kernel keeps SIGTERM from process 1 of a container, which then ends by SIGKILL alone.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn

INTERRUPTED, TERMINATED = 130, 143


class Terminated(KeyboardInterrupt):
    """SIGTERM has come; whatever makes room for Ctrl-C makes room for it."""


def take_sigterm() -> None:
    """From here on SIGTERM raises Terminated, until a command deals with it by itself."""
    signal.signal(signal.SIGTERM, _terminate)


def stop_behind(error: BaseException) -> KeyboardInterrupt | None:
    """The Ctrl-C or SIGTERM that was on its way out when this error was met: what is undone then may fail as well."""
    behind = error.__context__
    while behind is not None and not isinstance(behind, KeyboardInterrupt):
        behind = behind.__context__
    return behind


def exit_code(error: BaseException) -> int:
    """Of a command that a signal ended, as a shell tells it."""
    return TERMINATED if isinstance(error, Terminated) else INTERRUPTED


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated
