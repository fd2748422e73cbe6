from __future__ import annotations

from time import monotonic

import anyio
import pytest

from jobq.worker.alarm import Alarm

pytestmark = pytest.mark.anyio
LONG = 60.0


async def test_a_sleeper_is_woken_by_the_first_ring() -> None:
    alarm = Alarm()
    async with anyio.create_task_group() as group:
        group.start_soon(alarm.sleep, None)
        await anyio.wait_all_tasks_blocked()
        alarm.ring()
        alarm.ring()


async def test_a_ring_before_the_sleep_ends_that_one_and_no_other() -> None:
    alarm = Alarm()
    alarm.ring()
    with anyio.fail_after(LONG):
        await alarm.sleep(None)

    with anyio.move_on_after(0.02) as second:
        await alarm.sleep(None)

    assert second.cancelled_caught


async def test_a_sleep_ends_by_itself_when_its_time_is_over() -> None:
    began = monotonic()

    await Alarm().sleep(0.02)

    assert monotonic() - began >= 0.019


async def test_a_ring_after_a_sleep_was_cancelled_is_heard_by_the_next() -> None:
    alarm = Alarm()
    with anyio.move_on_after(0.01):
        await alarm.sleep(LONG)
    alarm.ring()

    with anyio.fail_after(LONG):
        await alarm.sleep(None)


async def test_one_that_always_rings_lets_others_have_their_turn() -> None:
    alarm, turns = Alarm(), []
    async with anyio.create_task_group() as group:

        async def other() -> None:
            turns.append("other")

        group.start_soon(other)
        for _ in range(3):
            alarm.ring()
            await alarm.sleep(None)
            turns.append("sleeper")

    assert turns[0] == "other"
