from __future__ import annotations

import logging
import threading
from datetime import timedelta

import pytest
from worker_values import Clock

from jobq.readings import Readings

PATIENCE_SECONDS = 10


class Source:
    """Counts how often it is read; waits while it is shut; fails with `error`."""

    def __init__(self) -> None:
        self.read = 0
        self.error: Exception | None = None
        self.is_open = threading.Event()
        self.is_open.set()
        self.has_read = threading.Event()

    def __call__(self) -> int:
        self.read += 1
        assert self.is_open.wait(PATIENCE_SECONDS)
        self.has_read.set()
        if self.error is not None:
            raise self.error
        return self.read


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def readings(source: Source, clock: Clock, *, patience: float = PATIENCE_SECONDS) -> Readings[int]:
    return Readings(source, max_age=timedelta(seconds=5), patience=timedelta(seconds=patience), clock=clock)


def ended(found: Readings[int]) -> None:
    """Wait for the reading that is under way."""
    assert found._ended.wait(PATIENCE_SECONDS)


def test_it_is_read_again_only_when_it_is_too_old(source: Source, clock: Clock) -> None:
    found = readings(source, clock)

    first, again = found.latest(), found.latest()
    clock.now += 5.1
    later = found.latest()

    assert (first, again, later) == (1, 1, 2)
    assert found.is_known


def test_what_cannot_be_read_is_none_and_said_once(
    source: Source, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jobq.metrics")
    found = readings(source, clock)
    found.latest()
    source.error = ValueError("password is sekret")
    clock.now += 6

    failed = [found.latest(), found.latest()]
    source.error = None

    assert (failed, found.is_known, found.latest()) == ([None, None], True, 4)
    assert [record.getMessage() for record in caplog.records] == [
        "the database cannot be read for metrics: ValueError",
        "the database can be read for metrics again",
    ]


def test_one_that_hangs_is_waited_for_so_long_and_joined_by_no_other(source: Source, clock: Clock) -> None:
    found = readings(source, clock, patience=0.01)
    found.latest()
    ended(found)
    source.is_open.clear()
    clock.now += 6

    first = found.latest()
    clock.now += 1
    hanging = [found.latest() for _ in range(3)]
    source.is_open.set()
    ended(found)

    assert first in (1, None)  # the clock of the test stands still while it is waited for
    assert hanging == [None, None, None]
    assert source.read == 2


@pytest.mark.anyio
async def test_in_an_event_loop_nothing_is_waited_for_and_what_was_read_last_is_given(
    source: Source, clock: Clock
) -> None:
    found = readings(source, clock)
    source.is_open.clear()

    assert (found.latest(), found.is_known) == (None, False)
    source.is_open.set()
    ended(found)
    clock.now += 60
    source.is_open.clear()

    assert found.latest() == 1  # and the next reading begins
    source.is_open.set()
    ended(found)
    assert found.latest() == 2
