"""The application of the tests on examples/own_executors: other processes import it by its name."""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta

import jobq

app = jobq.App()


def register(executor: str) -> None:
    """The same handlers for each executor."""

    @app.handler(f"{executor}.greet", executor=executor, max_attempts=1)
    def greet(name: str) -> str:
        print("not an answer")
        return f"hello {name} from {os.getpid()}"

    @app.handler(f"{executor}.fails", executor=executor, max_attempts=1)
    async def fails() -> None:
        raise LookupError("no such name")

    @app.handler(f"{executor}.dies", executor=executor, max_attempts=1)
    def dies() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    @app.handler(f"{executor}.sleeps", executor=executor, max_attempts=1, timeout=timedelta(seconds=1))
    def sleeps() -> None:
        time.sleep(1_000)


for each in ("program", "kubernetes", "ray"):
    register(each)
