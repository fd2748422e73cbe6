"""The very end of a worker's process: without the interpreter's tidying up, which takes long and may hang."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from dataclasses import dataclass


@dataclass(slots=True)
class Leaving:
    """at_once: the command that runs wants it so. code: its exit code, once it is known."""

    at_once: bool = False
    code: int | None = None


leaving = Leaving()


def prepare() -> None:
    """To be called before anything else gives atexit a function: the first one is called last."""
    atexit.register(_leave)


def _leave() -> None:
    if not leaving.at_once or leaving.code is None:
        return
    if (logging := sys.modules.get("logging")) is not None:
        logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(leaving.code)
