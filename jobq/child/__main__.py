"""Runs one job after the other, for as long as the worker wants."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
from io import TextIOWrapper

from jobq.child.application import load
from jobq.child.attempts import Attempts
from jobq.child.engines import engines_of
from jobq.child.logs import log_to_worker
from jobq.child.parent import Parent
from jobq.executors.process.crossing import end_to_wire, job_from_wire

PR_SET_PDEATHSIG = 1


def main() -> None:
    _prepare()
    parent = Parent(int(sys.argv[1]))
    hello = parent.hello()
    log_to_worker(parent, hello["level"])
    app = load(hello, parent)
    engines = engines_of(hello, parent)
    attempts = Attempts(app, parent, engines)
    parent.listen(on_cancel=attempts.cancel)
    parent.tell({"is": "ready", "kinds": list(app.handlers)})
    for row in parent.jobs():
        ended = attempts.run(job_from_wire(row))
        _flush()
        parent.ended(end_to_wire(ended))
    attempts.close()


def _prepare() -> None:
    """Whatever is sent to a whole group is for the worker: it decides what ends. What a handler starts is not spared,
    since a handler of Python's own is not inherited."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    faulthandler.enable()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")


def _flush() -> None:
    """What a job has printed is to be in the pipe before its end is told; a handler may have closed the streams."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115


if __name__ == "__main__":
    main()
