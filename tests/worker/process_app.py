"""The application of the tests on processes: children import it by its name."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import psycopg
import sqlalchemy as sa

import jobq

if "IMPORT_HANGS" in os.environ:
    signal.pause()
app = jobq.App()
logger = logging.getLogger("shop")
ONCE: dict[str, Any] = {"executor": "process", "max_attempts": 1}
WORK = sa.text("INSERT INTO effects VALUES (:pid)")
entered: list[str] = []


@dataclass
class Order:
    id: int
    notes: list[str]


@app.around
@contextmanager
def around() -> Iterator[None]:
    entered.append("around")
    yield
    entered.clear()


@app.handler("answer", **ONCE)
def answer(order: Order, after: timedelta) -> str:
    return f"{order.id} {order.notes} {after} {entered} in {os.getpid()}"


@app.handler("async_answer", **ONCE)
async def async_answer(name: str) -> jobq.Skip:
    await anyio.lowlevel.checkpoint()
    return jobq.Skip(f"{name} {entered} in {os.getpid()}")


@app.handler("about", **ONCE)
def about() -> str:
    context = jobq.current()
    job = context.job
    return f"{job.kind} {job.attempt} {job.is_last} {context.state} {context.cancelled}"


class Declined(ValueError):
    def __init__(self, code: int, *, reason: str) -> None:
        super().__init__(code)
        self.reason = reason

    def __str__(self) -> str:
        return f"declined: {self.reason}"


class Exotic(BaseException):
    pass


RAISED: dict[str, BaseException] = {
    "declined": Declined(7, reason="no money"),
    "key": KeyError("k"),
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "generator_exit": GeneratorExit(),
    "stop": StopIteration("one"),
    "exotic": Exotic("rare"),
    "group": ExceptionGroup("two", [ValueError("1"), KeyError("2")]),
    "permanent": jobq.Permanent("no recipient"),
    "snooze": jobq.Snooze(timedelta(hours=2)),
    "pause": jobq.PauseQueue(timedelta(hours=1), "quota"),
}


@app.handler("raises", executor="process", max_attempts=2, retry=lambda failures, error: timedelta(hours=1))
def raises(what: str) -> None:
    raise RAISED[what]


@app.handler(
    "by_error",
    executor="process",
    retry=jobq.ByError({Declined: lambda failures, error: timedelta(hours=error.reason == "no money")}),
)
def by_error() -> None:
    raise Declined(7, reason="no money")


@app.handler("final", executor="process", no_retry_on=(Declined,))
def final() -> None:
    raise Declined(7, reason="no money")


@app.handler("dies", **ONCE)
def dies(how: str) -> None:
    match how:
        case "exit":
            os._exit(7)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "babble":
            for number in range(3, 1000):
                with suppress(OSError):
                    socket.socket(fileno=number).sendall(b"\xff" * 8)
            time.sleep(60)
        case "segfault":
            ctypes.string_at(0)


@app.handler("good", **ONCE)
def good() -> str:
    return str(os.getpid())


def touch(path: str) -> None:
    with open(path, "w") as file:
        file.write(str(os.getpid()))


@app.handler("busy", executor="process", retry=lambda failures, error: timedelta(hours=1))
def busy(path: str) -> None:
    """Deaf to TERM, and with a child of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    helper = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    os.makedirs(os.path.join(os.path.dirname(path), "helper"), exist_ok=True)
    touch(os.path.join(os.path.dirname(path), "helper", str(helper.pid)))
    touch(path)
    while True:
        pass


@app.handler("polite", **ONCE)
def polite(path: str) -> None:
    touch(path)
    while not jobq.current().cancelled:
        time.sleep(0.005)
    touch(f"{path}.told")


@app.handler("checks", **ONCE)
def checks(path: str) -> None:
    touch(path)
    try:
        while True:
            jobq.current().check()
            time.sleep(0.005)
    except jobq.StoppedError:
        touch(f"{path}.told")
        raise


@app.handler("cleans_up", **ONCE)
async def cleans_up(path: str) -> None:
    touch(path)
    try:
        await anyio.sleep_forever()
    finally:
        touch(f"{path}.told")


@app.handler("eats", **ONCE)
def eats(mib: int) -> str:
    food = bytearray(mib << 20)
    for at in range(0, len(food), 4096):
        food[at] = 1
    time.sleep(60)
    return "full"


@app.handler("talks", **ONCE)
def talks() -> None:
    print("printed")
    print("complained", file=sys.stderr)
    os.system("echo from a program")
    logger.warning("logged %s", "well", extra={"order": 7})
    logger.debug("unwanted")
    try:
        raise ValueError("seen")
    except ValueError:
        logger.exception("trouble")
    print("without an end", end="")


@app.handler("floods", **ONCE)
def floods(mib: int) -> None:
    line = "x" * 1023
    for _ in range(mib << 10):
        print(line)


@app.handler("pays", executor="process", retry=lambda failures, error: timedelta(hours=1))
def pays(then: str = "") -> str:
    with jobq.current().transaction() as session:
        session.execute(WORK, {"pid": os.getpid()})
        do(then, "inside")
    do(then, "after")
    return "paid"


@app.handler("pays_async", executor="process", retry=lambda failures, error: timedelta(hours=1))
async def pays_async(then: str = "") -> str:
    async with jobq.current().transaction() as session:
        await session.execute(WORK, {"pid": os.getpid()})
        do(then, "inside")
    do(then, "after")
    return "paid"


def do(then: str, where: str) -> None:
    """What goes wrong: steal, raise or die, inside of the transaction or after it."""
    what, _, at = then.partition(" ")
    if at != where:
        return
    match what:
        case "raise":
            raise ValueError("no")
        case "die":
            os._exit(9)
        case "steal":
            with psycopg.connect(os.environ["LEDGER_URL"], autocommit=True) as connection:
                connection.execute("UPDATE jobq.jobs SET attempt = 99 WHERE id = %s", [jobq.current().job.id])


@app.handler("asks", **ONCE)
def asks(url: str) -> str:
    """F45: a query of its own, and a line for the log."""
    with psycopg.connect(url) as connection:
        number = connection.execute("SELECT pg_backend_pid(), count(*) FROM generate_series(1, 1000)").fetchone()
    logger.info("asked")
    assert number is not None
    return f"{os.getpid()} {number[0]}"


@app.handler("work", **ONCE)
def work(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@app.handler("surroundings", **ONCE)
def surroundings() -> str:
    return json.dumps([os.environ.get("PYTHONPATH"), sys.path[-1]])


@app.handler("waits", **ONCE)
def waits(path: str) -> None:
    """Until the file that it makes is taken away."""
    touch(path)
    while os.path.exists(path):
        time.sleep(0.005)


@app.handler("forks", **ONCE)
def forks() -> str:
    """The copy comes back from the handler too."""
    return "copy" if os.fork() == 0 else "original"
