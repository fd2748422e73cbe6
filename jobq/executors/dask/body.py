"""What runs on a Dask worker: imported there by its name, so that no code crosses, only an order as a text."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

from distributed import Worker, get_worker

from jobq.executors.dask.reports import Reports
from jobq.executors.elsewhere import Cancel, kinds_at, perform
from jobq.executors.process.place import Place

TELL_SECONDS = 30.0  # for a word to the scheduler; a Dask worker without one closes by itself
BEGAN, ENDED = "began", "ended"
BEGUN_BEFORE = ""  # in place of an answer

_lock = threading.Lock()
_running: dict[str, Cancel] = {}
_stopped: set[str] = set()


class BegunBeforeError(Exception):
    """Dask runs the function again, after the loss of its worker; but it may be what has killed that one."""


def run(order: str, token: str, topic: str) -> str:
    """Perform an order, once. Its begin is told before its function runs, so that it is not lost unseen."""

    def begin(cancel: Cancel) -> None:
        with _lock:
            _running[token] = cancel
        _ask(worker, _begin(worker, token, topic))

    worker = get_worker()
    reports = Reports(worker, token, topic)
    try:
        return perform(order, on_begin=begin, on_report=reports.note)
    except BegunBeforeError:
        return BEGUN_BEFORE
    finally:
        reports.flush()
        with _lock:
            _running.pop(token, None)
            is_stopped = token in _stopped
            _stopped.discard(token)
        if is_stopped:
            worker.log_event(topic, [ENDED, token, worker.address])


async def stop(token: str, topic: str, dask_worker: Worker) -> None:
    """Tell a function to stop; that it has ended is told to the topic, at once if it has done so already."""
    with _lock:
        cancel = _running.get(token)
        if cancel is not None:
            _stopped.add(token)
    if cancel is None:
        dask_worker.log_event(topic, [ENDED, token, dask_worker.address])
    else:
        cancel()


async def kinds(module: str, attribute: str, others: list[str]) -> list[str] | str:
    """The kinds that the application has handlers for where it is imported here; a text: why it cannot be."""
    try:
        return await asyncio.to_thread(kinds_at, Place(module, attribute, tuple(others)))
    except Exception as error:
        return str(error)


async def _begin(worker: Worker, token: str, topic: str) -> None:
    """The mark of a begin is a distributed.Event, without the client that its class would make in this process."""
    if await worker.scheduler.event_is_set(name=token):
        raise BegunBeforeError(token)
    told = worker.scheduler.log_event(topic=topic, msg=[BEGAN, token, worker.address])
    await asyncio.gather(worker.scheduler.event_set(name=token), told)


def _ask(worker: Worker, asked: Coroutine[Any, Any, None]) -> None:
    """From the thread of a function in the event loop of its Dask worker."""
    loop: Any = worker.loop
    asyncio.run_coroutine_threadsafe(asked, loop.asyncio_loop).result(TELL_SECONDS)
