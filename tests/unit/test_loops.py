from __future__ import annotations

from datetime import timedelta

import anyio
import pytest

from jobq.worker.link import Link
from jobq.worker.loops import every, wait_for, with_jitter

pytestmark = pytest.mark.anyio
INSTANT = timedelta(milliseconds=1)


class Work:
    """Raises one after the other what it was given, then succeeds; stops its loop after so many calls."""

    def __init__(self, *errors: BaseException, calls: int) -> None:
        self.stop = anyio.Event()
        self.done = 0
        self._errors = list(errors)
        self._calls = calls

    async def __call__(self) -> None:
        self.done += 1
        if self.done >= self._calls:
            self.stop.set()
        if self._errors:
            raise self._errors.pop(0)


async def run(work: Work, link: Link) -> None:
    with anyio.fail_after(10):
        await every(INSTANT, work, service="rescuer", link=link, stop=work.stop)


async def test_work_is_done_at_once_and_again_until_stopped() -> None:
    work = Work(calls=3)

    await run(work, Link(list))

    assert work.done == 3


async def test_trouble_that_passes_is_waited_out() -> None:
    link = Link(list)
    work = Work(ConnectionResetError(), calls=2)

    await run(work, link)

    assert work.done == 2
    assert link.away_for is None


async def test_any_other_trouble_ends_the_loop() -> None:
    work = Work(ZeroDivisionError(), calls=9)

    with pytest.raises(ZeroDivisionError):
        await run(work, Link(list))

    assert work.done == 1


async def test_a_loop_that_was_stopped_before_does_nothing() -> None:
    work = Work(calls=1)
    work.stop.set()

    await run(work, Link(list))

    assert work.done == 0


async def test_a_wait_ends_with_the_event_or_with_the_time() -> None:
    event = anyio.Event()
    assert not await wait_for(event, 0)
    assert not await wait_for(event, -5)

    event.set()
    with anyio.fail_after(5):
        assert await wait_for(event, 3_600)


async def test_intervals_differ_by_ten_percent_so_that_a_fleet_does_not_ask_together() -> None:
    seconds = [with_jitter(timedelta(seconds=10)) for _ in range(1_000)]

    assert all(9 <= each <= 11 for each in seconds)
    assert max(seconds) - min(seconds) > 1
    assert len(set(seconds)) > 500
