"""How the worker's services wait and repeat."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from datetime import timedelta

import anyio

from jobq.faults import can_wait_out
from jobq.worker.link import Link


async def wait_for(event: anyio.Event, seconds: float) -> bool:
    """Whether the event came within the time."""
    with anyio.move_on_after(max(seconds, 0)):
        await event.wait()
    return event.is_set()


def with_jitter(interval: timedelta) -> float:
    """Seconds, 10 % either way, so that a fleet started together does not ask together."""
    return interval.total_seconds() * random.uniform(0.9, 1.1)


async def every(
    interval: timedelta, work: Callable[[], Awaitable[object]], *, service: str, link: Link, stop: anyio.Event
) -> None:
    """Do `work` at once and then every interval until `stop`. Trouble that passes is waited out; the rest is raised."""
    while not stop.is_set():
        try:
            await work()
        except Exception as error:
            if not can_wait_out(error):
                raise
            pause = link.failed(service, error)
        else:
            link.worked(service)
            pause = with_jitter(interval)
        await wait_for(stop, pause)


async def until(end: Callable[[], Awaitable[object]], work: Callable[[], Awaitable[object]]) -> None:
    """Do `work`, but no longer than until `end` returns."""
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            await end()
            group.cancel_scope.cancel()

        group.start_soon(watch)
        await work()
        group.cancel_scope.cancel()
