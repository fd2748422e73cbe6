"""What no handler may do to the event loop that it shares: stop it, or go on in it in a copy of the process."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, NoReturn
from weakref import WeakSet

from jobq.context import current_id

_guarded: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


def guard(loop: asyncio.AbstractEventLoop) -> None:
    """Have `stop()` refuse within a handler, and end a forked copy of this process that comes back to the loop.

    A copy would be a second worker on the same connections, under the same id. Loops written in C are left as they are.
    """
    _watch_forks()
    if loop not in _guarded:
        _guarded.add(loop)
        with suppress(AttributeError):
            loop.stop = _refusing(loop.stop)  # type: ignore[method-assign]


@cache
def _watch_forks() -> None:
    """Once a process."""
    os.register_at_fork(after_in_child=_end_copies)


def _refusing(stop: Callable[[], None]) -> Callable[[], None]:
    def refuse_in_handler() -> None:
        if current_id() is not None:
            raise RuntimeError("a handler may not stop the event loop: the worker and its other jobs run in it")
        stop()

    return refuse_in_handler


class _Ending(deque[Any]):
    """In place of a loop's callbacks that are ready: the first one that is asked for ends the process."""

    def popleft(self) -> NoReturn:
        os._exit(0)


def _end_copies() -> None:
    """In the copy: it may go on as it likes (multiprocessing does), but not in the worker's loop."""
    for loop in list(_guarded):
        guarded: Any = loop
        with suppress(AttributeError):
            guarded._run_once = _Ending().popleft
            guarded._ready = _Ending()
