"""What the process of a worker holds against what handlers may do to it as a whole."""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import anyio

from jobq.worker.exiting import end_process

logger = logging.getLogger("jobq.run")
LEFT_BEHIND = 70
LOOK_SECONDS = 1.0
MARGIN_SECONDS = 5.0  # where code in C keeps the interpreter's lock: then nobody can speak, and the code is 1
STDERR = 2

_deadline: threading.Timer | None = None


def end_in_time(seconds: float) -> None:
    """End the process after so many seconds, with 70; a later call counts instead of this one.

    The event loop and the interpreter wait without end for threads that handlers have started, and for functions that
    they have given to atexit.
    """
    global _deadline
    if _deadline is not None:
        _deadline.cancel()
    _deadline = threading.Timer(seconds, _cut_off)
    _deadline.daemon = True
    _deadline.name = "jobq-deadline"
    _deadline.start()
    faulthandler.dump_traceback_later(seconds + MARGIN_SECONDS, exit=True, file=STDERR)


def _cut_off() -> None:
    names = [each.name for each in threading.enumerate() if not (each.daemon or each is threading.main_thread())]
    said = "left behind, still running: %s", ", ".join(["the main thread", *names])
    end_process(LEFT_BEHIND, lambda: logger.warning(*said))


@contextmanager
def watching_interpreter(stall: timedelta) -> Iterator[None]:
    """End the process, with 1 and every thread's stack, when code in C keeps the interpreter's lock for that long.

    No thread of Python's runs then, no heartbeat, and no signal is heard; a clock in C does.
    """
    seconds, over = stall.total_seconds(), threading.Event()

    def wind_up() -> None:
        while not over.is_set():
            faulthandler.dump_traceback_later(seconds, exit=True, file=STDERR)
            over.wait(seconds / 6)

    watch = threading.Thread(target=wind_up, name="jobq-lock-watch", daemon=True)
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()


def mend_streams() -> None:
    """A handler may have closed them; whatever follows prints and flushes."""
    if sys.stdout.closed:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr.closed:
        sys.stderr = open(STDERR, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115


async def keep_signals(numbers: Iterable[signal.Signals]) -> None:
    """Put back what a handler replaces: the worker could not be stopped any more, or would not hear of it."""
    ours = {number: signal.getsignal(number) for number in numbers}
    while True:
        await anyio.sleep(LOOK_SECONDS)
        for number, handler in ours.items():
            if signal.getsignal(number) is not handler:
                logger.warning("%s was taken over by a handler or a library: it is the worker's again", number.name)
                with suppress(ValueError):
                    signal.signal(number, handler)
                    signal.siginterrupt(number, False)
