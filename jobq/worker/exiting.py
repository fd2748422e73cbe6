"""The end of a process that cannot be waited for: bounded, whatever hangs in it."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

SPEAK_SECONDS = 1.0  # for the last words: who reads the log may be stuck, and the log's lock be held by what hangs


def end_process(code: int, say: Callable[[], object] = lambda: None) -> NoReturn:
    """At once, by os._exit: neither the event loop nor the interpreter waits for what cannot be stopped."""

    def speak() -> None:
        with suppress(Exception):
            say()
            logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):
                stream.flush()

    speaker = threading.Thread(target=speak, name="jobq-last-words", daemon=True)
    with suppress(RuntimeError):  # an interpreter that ends starts no thread any more
        speaker.start()
        speaker.join(SPEAK_SECONDS)
    os._exit(code)
