"""Handlers that do something to the whole process of their worker. In their second attempt they do nothing."""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import anyio
import apps

import jobq

app = jobq.App()
app.lifespan(apps.ledger)
logger = logging.getLogger("shop")
kept: list[Any] = []


async def stubborn() -> None:
    while True:
        try:
            await anyio.sleep(3600)
        except BaseException:
            continue


def leave_a_task() -> None:
    kept.append(anyio.lowlevel.current_token().native_token.create_task(stubborn()))  # type: ignore[attr-defined]


def take_descriptors() -> None:
    """All that there are."""
    while True:
        kept.append(open(os.devnull))  # noqa: SIM115


def take_signals() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def close_streams() -> None:
    print("a line without an end", end="")
    for stream in (sys.stdout, sys.stderr, sys.stdin):
        stream.close()


def flood_the_log() -> None:
    for _ in range(1000):
        logger.warning("x" * 1000)


ACTS: dict[str, Callable[[], object]] = {
    "fork": os.fork,
    "take_descriptors": take_descriptors,
    "give_descriptors_back": kept.clear,
    "take_signals": take_signals,
    "close_streams": close_streams,
    "flood_the_log": flood_the_log,
    "exit": lambda: os._exit(7),
    "abort": os.abort,
    "close_descriptors": lambda: os.closerange(3, 256),
    "start_a_thread": lambda: threading.Thread(target=time.sleep, args=(3600,), name="for ever").start(),
    "block_atexit": lambda: atexit.register(time.sleep, 3600),
    "leave_a_task": leave_a_task,
    "hold_the_lock": lambda: ctypes.PyDLL(None).sleep(3600),
}


@app.handler("act_in_loop", max_attempts=3)
async def act_in_loop(what: str) -> str:
    await apps.began()
    if apps.is_first():
        ACTS[what]()
        await anyio.sleep(0.01)
    return str(os.getpid())


@app.handler("act_in_thread", max_attempts=3)
def act_in_thread(what: str) -> str:
    if apps.is_first():
        ACTS[what]()
    return str(os.getpid())


@app.handler("fine")
async def fine() -> str:
    return str(os.getpid())
