"""A real `jobq run` for a test: its lines on stderr are waited for, its process never outlives the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic

APP = """
import asyncio, logging, time
import jobq

app = jobq.App()
other = jobq.App()
nothing = jobq.App()
registry = jobq.Registry()
logger = logging.getLogger("shop")

@app.handler("job.quick", queue="fast")
async def quick(text: str) -> str:
    logger.info("said %s", text, extra={"amount": float("nan"), "who": "ada"})
    return text

@app.handler("job.broken", queue="fast")
async def broken() -> None:
    try:
        raise KeyError("lost\\n\\x1b[31m")
    except KeyError:
        logger.exception("handled")

@app.handler("job.long")
async def long() -> None:
    logger.info("begun")
    await asyncio.sleep(60)

@app.handler("job.stubborn")
async def stubborn() -> None:
    logger.info("begun")
    while True:
        try:
            await asyncio.sleep(60)
        except BaseException:
            pass

@app.handler("job.thread")
def thread() -> None:
    logger.info("begun")
    time.sleep(60)

@app.handler("job.loop")
async def loop() -> str:
    return type(asyncio.get_running_loop()).__module__

@other.handler("job.other")
async def others() -> None: ...

@other.lifespan
async def opened():
    raise RuntimeError("no key for the API")
    yield
"""


class RunProcess:
    """`jobq run` with these arguments, in `folder`, which holds its modules."""

    prefix: tuple[str, ...] = ()

    def __init__(self, folder: Path, *arguments: str, database_url: str | None = None) -> None:
        hidden = {"JOBQ_DATABASE_URL", "DATABASE_URL"}
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        environment |= {"XDG_DATA_HOME": str(folder / "data")}
        environment |= {"JOBQ_DATABASE_URL": database_url} if database_url else {}
        self.process = subprocess.Popen(
            [*self.prefix, sys.executable, "-m", "jobq", "run", *arguments],
            cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.lines: list[str] = []

    def until(self, text: str) -> str:
        """The next line that holds `text`."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            if text in line:
                return self.lines[-1]
        raise AssertionError(f"ended without saying {text!r}:\n" + "\n".join(self.lines))

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """Wait for the end; the exit code. Nothing may have been written to stdout."""
        out, err = self.process.communicate(timeout=60)
        self.lines += err.splitlines()
        assert out == ""
        return self.process.returncode

    def ends_within(self, seconds: float) -> int:
        """The exit code, of a process that ends in good time (with room for a busy machine)."""
        began = monotonic()
        code = self.end()
        assert monotonic() - began < seconds
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
