"""Who gets a thread, and who waits for one."""

from __future__ import annotations

import asyncio

import pytest

from jobq.errors import OptionError, OptionTypeError
from jobq.executors.limits import ThreadLimits
from jobq.queue_settings import QueueSettings

pytestmark = pytest.mark.anyio
QUEUES = {"images": QueueSettings(threads=1), "email": QueueSettings()}


async def waits(limits: ThreadLimits, queue: str) -> asyncio.Task[None]:
    assert not limits.take(queue)
    task = asyncio.ensure_future(limits.wait(queue))
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_without_limits_everybody_has_a_thread() -> None:
    limits = ThreadLimits()

    assert all(limits.take("images") for _ in range(1000))


async def test_threads_are_given_in_the_order_of_asking_and_a_full_queue_is_passed_by() -> None:
    limits = ThreadLimits(2, QUEUES)
    assert all(limits.take(queue) for queue in ("images", "email"))
    image, first, second = [await waits(limits, queue) for queue in ("images", "email", "email")]

    limits.give_back("email")
    await first
    assert not any(task.done() for task in (image, second))
    limits.give_back("images")
    await image
    limits.give_back("email")
    await second


async def test_one_who_stops_waiting_takes_nothing_with_him() -> None:
    limits = ThreadLimits(1)
    assert limits.take("email")
    gone, given, last = [await waits(limits, "email") for _ in range(3)]

    gone.cancel()
    await asyncio.wait([gone])
    limits.give_back("email")  # to `given`, which is cancelled before it hears of it
    given.cancel()
    await last

    assert all(task.cancelled() for task in (gone, given))
    limits.give_back("email")
    assert limits.take("email")


@pytest.mark.parametrize(("threads", "error"), [(0, OptionError), (10_001, OptionError), (True, OptionTypeError)])
def test_a_queues_threads_are_a_number(threads: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="threads"):
        QueueSettings(threads=threads)
