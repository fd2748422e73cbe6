"""One timer for the timeouts of all jobs that run."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from time import monotonic

import anyio
import pytest
from worker_values import claimed, held_of

from jobq.worker.held import Held, Stop
from jobq.worker.timeouts import Timeouts

pytestmark = pytest.mark.anyio


def held(id_: int, milliseconds: int) -> Held:
    return held_of(claimed(id_), timeout=timedelta(milliseconds=milliseconds), started=monotonic())


async def stopped(jobs: list[Held], *, broken: int | None = None) -> list[int]:
    """The ids in the order in which they are told to stop; to stop the broken one raises."""
    seen: list[int] = []

    def stop(one: Held, reason: Stop) -> None:
        one.stop = reason
        if one.job.id == broken:
            raise RuntimeError("cannot be stopped")
        seen.append(one.job.id)

    running = set(jobs)
    timeouts = Timeouts(running, stop)
    for one in jobs:
        timeouts.watch(one)
    await anyio.sleep(1)
    return seen


async def test_each_is_stopped_at_its_own_time_whichever_began_first() -> None:
    assert await stopped([held(1, 650), held(2, 50), held(3, 3_600_000), held(4, 350)]) == [2, 4, 1]


async def test_one_that_cannot_be_stopped_takes_nobody_elses_timeout_away() -> None:
    loop, told = asyncio.get_running_loop(), list[str]()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _loop, context: told.append(str(context["exception"])))
    try:
        assert await stopped([held(1, 50), held(2, 350), held(3, 650)], broken=1) == [2, 3]
    finally:
        loop.set_exception_handler(before)
    assert told == ["cannot be stopped"]


async def test_a_deadline_that_has_moved_counts_from_its_new_begin() -> None:
    late = held(1, 250)
    late.started += 10

    assert await stopped([late, held(2, 100)]) == [2]
