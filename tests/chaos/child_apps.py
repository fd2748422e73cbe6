"""Handlers in processes, for the tests that kill their worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta

import jobq

app = jobq.App()


@app.handler("good", executor="process", max_attempts=1)
def good() -> None:
    print("good")


@app.handler("dies", executor="process", max_attempts=1)
def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@app.handler("leaves", executor="process", max_attempts=1, timeout=timedelta(seconds=1))
def leaves() -> None:
    """Starts a program and does not end."""
    subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    while True:
        time.sleep(1)


@app.handler("holds", executor="process")
def holds(path: str, how: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(f"{path}.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"{path}.new", path)
    match how:
        case "sleeps":
            time.sleep(1_000)
        case "loops":
            while True:
                pass
        case "holds_the_lock":
            sum(range(10**15))  # one call in C: no other thread of the interpreter runs until its end
