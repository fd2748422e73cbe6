"""Reads something slow now and then, for readers who must not wait for long."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")
logger = logging.getLogger("jobq.metrics")


class Readings(Generic[T]):
    """Calls `read` in a daemon thread, one at a time, at most once in `max_age`.

    A thread, so that whoever asks can go on without it: a server that accepts and says nothing would hold up all of a
    scrape. One that hangs is not joined by another.
    """

    def __init__(
        self,
        read: Callable[[], T],
        *,
        max_age: timedelta,
        patience: timedelta,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._read = read
        self._max_age = max_age.total_seconds()
        self._patience = patience.total_seconds()
        self._clock = clock
        self._lock = threading.Lock()
        self._ended = threading.Event()  # of the reading that is under way, or was last
        self._ended.set()
        self._began = 0.0
        self._latest: tuple[float, T] | None = None
        self._has_ended = False
        self._is_failing = False

    @property
    def is_known(self) -> bool:
        """Whether a reading has ended, or one takes longer than it may."""
        return self._has_ended or self._hangs

    def latest(self) -> T | None:
        """What was read within the last `max_age`, or is now; None, when it cannot be read, or not in time.

        In the thread of an event loop nothing is waited for: what was read last does, whenever that was.
        """
        latest = self._latest
        if latest is None or self._clock() - latest[0] > self._max_age:
            self._begin()
            if not _is_in_loop():
                self._ended.wait(self._patience)
        latest = self._latest
        return None if latest is None or self._hangs else latest[1]

    @property
    def _hangs(self) -> bool:
        return not self._ended.is_set() and self._clock() - self._began >= self._patience

    def _begin(self) -> None:
        with self._lock:
            if self._ended.is_set():
                self._ended, self._began = threading.Event(), self._clock()
                threading.Thread(target=self._run, args=(self._ended,), name="jobq-metrics", daemon=True).start()

    def _run(self, ended: threading.Event) -> None:
        try:
            self._latest = (self._clock(), self._read())
            self._say(None)
        except Exception as error:
            self._latest = None
            self._say(error)
        finally:
            self._has_ended = True
            ended.set()

    def _say(self, error: Exception | None) -> None:
        """Once for a run of failures; not the text of the error, which may hold a password."""
        if error is not None and not self._is_failing:
            logger.warning("the database cannot be read for metrics: %s", type(error).__name__)
        elif error is None and self._is_failing:
            logger.warning("the database can be read for metrics again")
        self._is_failing = error is not None


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
