"""Makes the processes of a Dask cluster: for each line a copy of itself, which has imported Dask and jobq already.

The lines are `scheduler PORT` and `worker ADDRESS THREADS NAME=AMOUNT,...`; it answers with the copy's pid and address.
All of them end with it.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import sys
from typing import NoReturn

from distributed import Scheduler, Worker

import jobq.executors.dask.body  # noqa: F401

PR_SET_PDEATHSIG = 1
LOCAL = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}


async def scheduler(pipe: int, port: str) -> None:
    async with Scheduler(port=int(port), **LOCAL) as node:
        tell(pipe, node.address)
        await node.finished()


async def worker(pipe: int, address: str, threads: str, resources: str = "") -> None:
    amounts = {name: float(amount) for name, amount in (each.split("=") for each in resources.split(",") if each)}
    async with Worker(address, nthreads=int(threads), resources=amounts, **LOCAL) as node:
        tell(pipe, node.address)
        await node.finished()


def tell(pipe: int, address: str) -> None:
    os.write(pipe, address.encode())
    os.close(pipe)


def live(pipe: int, what: str, *arguments: str) -> NoReturn:
    """The life of a copy."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    asyncio.run({"scheduler": scheduler, "worker": worker}[what](pipe, *arguments))
    os._exit(0)  # a function that still runs in a thread would be waited for


def main() -> None:
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who ends is gone at once
    for line in sys.stdin:
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            live(writing, *line.split())
        os.close(writing)
        with open(reading) as pipe:
            print(pid, pipe.read(), flush=True)


if __name__ == "__main__":
    main()
