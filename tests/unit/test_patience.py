"""Timers for which a moment in which nothing could run hardly counts."""

from __future__ import annotations

import asyncio
import time

import pytest

from jobq.executors.patience import STEP_SECONDS, AwakeTimer, awake_timeout

pytestmark = pytest.mark.anyio
SECONDS = 4 * STEP_SECONDS


async def test_a_timer_is_not_over_when_nothing_could_run_for_as_long() -> None:
    over = asyncio.Event()
    began = time.monotonic()
    AwakeTimer(SECONDS, over.set)

    time.sleep(SECONDS * 2)  # noqa: ASYNC251
    await asyncio.sleep(0.01)

    assert not over.is_set()
    await over.wait()
    assert time.monotonic() - began >= SECONDS * 2 + 3 * STEP_SECONDS


async def test_a_timer_that_is_cancelled_calls_nothing() -> None:
    over = asyncio.Event()
    timers = [AwakeTimer(SECONDS, over.set) for _ in range(2)]
    timers[0].cancel()
    await asyncio.sleep(1.5 * STEP_SECONDS)  # the second is cancelled between two of its steps

    timers[1].cancel()
    await asyncio.sleep(SECONDS)

    assert not over.is_set()


async def test_a_block_has_its_time_also_when_nothing_could_run_for_as_long() -> None:
    async with awake_timeout(SECONDS):
        time.sleep(SECONDS * 2)  # noqa: ASYNC251
        await asyncio.sleep(STEP_SECONDS)


async def test_a_block_that_takes_longer_is_cut_off() -> None:
    with pytest.raises(TimeoutError):
        async with awake_timeout(STEP_SECONDS):
            await asyncio.Event().wait()
