"""What a handler should not do, each by its name, to be done in the loop, in a thread and in a process."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import gc
import inspect
import locale
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import anyio
import psycopg

import jobq

app = jobq.App()
MIB = 1 << 20
TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")
kept: list[Any] = []


class Rude(BaseException):
    pass


class Slow(Exception):
    def __str__(self) -> str:
        time.sleep(0.2)
        return "said at last"


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def raises(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def recurse(n: int = 0) -> int:
    return recurse(n + 1)


def go_deep() -> None:
    """As far down as a raised limit lets it, and then an error."""

    def down(n: int) -> None:
        if n == 0:
            raise ValueError("at the bottom")
        down(n - 1)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 25_000)
    try:
        down(20_000)
    finally:
        sys.setrecursionlimit(limit)


def chain() -> None:
    """An error with a thousand others behind it."""
    last: Exception = ValueError("first")
    for n in range(1000):
        error = KeyError(n)
        error.__cause__ = last
        last = error
    raise last


def run_a_loop() -> str:
    async def inner() -> str:
        return "inner"

    coroutine = inner()
    try:
        return asyncio.run(coroutine)
    finally:
        coroutine.close()


async def cancel_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await anyio.sleep(60)


def cancel_itself_and_return() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return "as if nothing was"


async def stray() -> None:
    await anyio.sleep(0.01)
    kept.append("stray task")


async def leave_a_task() -> str:
    kept.append(asyncio.create_task(stray()))
    return "left"


def leave_a_thread() -> str:
    threading.Thread(target=lambda: kept.append("stray thread"), daemon=True).start()
    return "left"


def close_the_loop() -> None:
    asyncio.get_running_loop().close()


def stop_the_loop() -> None:
    asyncio.get_running_loop().stop()


def set_a_variable() -> str:
    before = TENANT.get()
    TENANT.set("somebody")
    return before


def delete_own_row() -> str:
    with psycopg.connect(os.environ["HOSTILE_URL"], autocommit=True) as connection:
        connection.execute("DELETE FROM jobq.jobs WHERE id = %s", [jobq.current().job.id])
    return "gone"


def stop_collecting() -> str:
    gc.disable()
    return "no collector"


def change_surroundings() -> str:
    """All of it is the process's, and stays."""
    os.environ["LC_ALL"] = "C"
    os.umask(os.umask(0o022))
    locale.setlocale(locale.LC_NUMERIC, "C")
    os.chdir("/")
    return os.getcwd()


def take_a_signal() -> None:
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)


def print_much() -> str:
    for _ in range(20):
        print("x" * MIB)
    return "printed"


ACTS: dict[str, Callable[[], Any]] = {
    "system_exit": lambda: sys.exit(3),
    "keyboard_interrupt": raises(KeyboardInterrupt()),
    "generator_exit": raises(GeneratorExit()),
    "stop_iteration": raises(StopIteration("one")),
    "base_exception": raises(Rude("rude")),
    "cancelled_error": raises(asyncio.CancelledError()),
    "slow_str": raises(Slow()),
    "mute_str": raises(Mute()),
    "recursion": recurse,
    "deep_traceback": go_deep,
    "chain_of_causes": chain,
    "memory_error": lambda: bytearray(1 << 60),
    "long_message": lambda: raises(ValueError("m" * (100 * MIB)))(),
    "long_result": lambda: "r" * (100 * MIB),
    "wrong_result": lambda: 42,
    "awaitable_result": stray,
    "asyncio_run": run_a_loop,
    "cancel_itself": cancel_itself,
    "cancel_itself_and_return": cancel_itself_and_return,
    "leave_a_task": leave_a_task,
    "leave_a_thread": leave_a_thread,
    "close_the_loop": close_the_loop,
    "stop_the_loop": stop_the_loop,
    "set_a_variable": set_a_variable,
    "set_a_variable_again": set_a_variable,
    "delete_own_row": delete_own_row,
    "stop_collecting": stop_collecting,
    "change_surroundings": change_surroundings,
    "take_a_signal": take_a_signal,
    "print_much": print_much,
    "exit_at_once": lambda: os._exit(7),
    "abort": os.abort,
    "crash": lambda: ctypes.string_at(0),
}


async def act_async(what: str) -> Any:
    result = ACTS[what]()
    return await result if inspect.isawaitable(result) else result


def act(what: str) -> Any:
    return ACTS[what]()


for where, function, executor in (
    ("loop", act_async, "auto"),
    ("thread", act, "auto"),
    ("process", act, "process"),
    ("loop of a process", act_async, "process"),
):
    app.handler(f"act in {where}".replace(" ", "."), executor=executor, max_attempts=1)(function)
