"""The application of the tests on Dask: Dask workers import it by its name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

import jobq

app = jobq.App()
ONCE: dict[str, Any] = {"executor": "dask", "max_attempts": 1}
entered: list[str] = []


@dataclass
class Order:
    id: int
    notes: list[str]


class Declined(ValueError):
    def __init__(self, code: int, *, reason: str) -> None:
        super().__init__(code)
        self.reason = reason


@app.around
@contextmanager
def around() -> Iterator[None]:
    entered.append("around")
    try:
        yield
    finally:
        entered.remove("around")


def later(failures: int, error: BaseException) -> timedelta:
    return timedelta(hours=1)


@app.handler("answer", **ONCE)
def answer(order: Order, after: timedelta) -> str:
    job = jobq.current().job
    return f"{order.id} {order.notes} {after} {entered} {job.kind} {job.attempt} in {os.getpid()}"


@app.handler("async_answer", **ONCE)
async def async_answer(name: str) -> jobq.Skip:
    await anyio.lowlevel.checkpoint()
    return jobq.Skip(f"{name} {entered} {jobq.current().state}")


@app.handler("raises", executor="dask", retry=jobq.ByError({Declined: later}))
def raises() -> None:
    raise Declined(7, reason="no money")


@app.handler("pays", **ONCE)
def pays() -> None:
    with jobq.current().transaction():
        raise AssertionError("a transaction")


def touch(path: str) -> None:
    file = Path(path)
    file.with_suffix(".new").write_text(str(os.getpid()))
    file.with_suffix(".new").rename(file)


@app.handler("waits", executor="dask", retry=later)
def waits(path: str) -> str:
    """Until the file that it makes is taken away, whatever it is told."""
    touch(path)
    while os.path.exists(path):
        time.sleep(0.01)
    return "ended"


@app.handler("waits_once", executor="dask", on_interrupt="fail")
def waits_once(path: str) -> str:
    return waits(path)


@app.handler("polite", executor="dask", retry=later)
def polite(path: str) -> None:
    touch(path)
    while not jobq.current().cancelled:
        time.sleep(0.005)
    touch(f"{path}.told")


@app.handler("cleans_up", executor="dask", retry=later)
async def cleans_up(path: str) -> None:
    touch(path)
    try:
        await anyio.sleep_forever()
    finally:
        touch(f"{path}.told")


@app.handler("tells", executor="dask", retry=later)
def tells() -> str:
    """Where an earlier attempt was, and how far it is itself."""
    context = jobq.current()
    earlier = context.last_checkpoint
    for page in range(1, 1_001):
        context.progress(page / 1_000, f"page {page}")
        context.checkpoint({"page": page})
    if earlier is None:
        raise ValueError("not yet")
    return f"was at {earlier}"


@app.handler("dies", executor="dask", retry=later)
def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@app.handler("good", **ONCE)
def good() -> str:
    return str(os.getpid())


@app.handler("on_gpu", resources={"GPU": 1}, **ONCE)
def on_gpu() -> str:
    return str(os.getpid())


@app.handler("work", executor="dask", retry=lambda failures, error: timedelta(seconds=0.1), max_attempts=100)
def work(path: str) -> None:
    """20 ms, and a line that says that it came to its end."""
    time.sleep(0.02)
    with open(path, "a") as file:
        file.write(f"{jobq.current().job.id}\n")
