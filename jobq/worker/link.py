"""The state of the worker's link to the database: said once when it is lost, once when it is back."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from time import monotonic

from jobq.events import ErrorCallback, ErrorEvent, tell
from jobq.faults import said_briefly

logger = logging.getLogger("jobq.worker")
LONGEST_PAUSE_SECONDS = 2.0
STEADY_SECONDS = 1.0  # of work after which a service that fails is at its first failure again


class Link:
    """One run of failures of all the worker's loops together: one record, one ErrorEvent, one word when it is over."""

    def __init__(
        self, callbacks: Callable[[], Sequence[ErrorCallback]], clock: Callable[[], float] = monotonic
    ) -> None:
        self.callbacks = callbacks
        self._clock = clock
        self._failing: dict[str, int] = {}
        self._recovered: dict[str, tuple[int, float]] = {}  # after how many failures, and when
        self._since = 0.0
        self._lock = threading.Lock()  # the heartbeat's thread reports here too

    @property
    def away_for(self) -> timedelta | None:
        """How long something of the worker's has been failing; None when nothing is."""
        return timedelta(seconds=self._clock() - self._since) if self._failing else None

    def failed(self, service: str, error: BaseException) -> float:
        """Take note of a failure; returns how many seconds to wait before the next try (0.05 to 2, with jitter).

        What works for a moment and fails again waits longer each time: making a connection is what costs.
        """
        with self._lock:
            is_first = not self._failing
            times = self._failing[service] = self._failures_of(service) + 1
        if is_first:
            self._since = self._clock()
            logger.warning("the database cannot be used by the %s: %s; trying again", service, said_briefly(error))
            tell(self.callbacks(), ErrorEvent(job=None, error=error, attempt=None, final=False))
        return min(LONGEST_PAUSE_SECONDS, 0.1 * 2.0 ** min(times - 1, 10)) * random.uniform(0.5, 1.0)

    def worked(self, service: str) -> None:
        """Take note of a success; the last of the failing services to succeed ends the run."""
        if not self._failing:
            return
        with self._lock:
            times = self._failing.pop(service, 0)
            is_last = bool(times) and not self._failing
            if times:
                self._recovered[service] = times, self._clock()
        if is_last:
            logger.warning("the database can be used again after %.1f s", self._clock() - self._since)

    def _failures_of(self, service: str) -> int:
        times, at = self._recovered.pop(service, (0, 0.0))
        return self._failing.get(service) or (times if self._clock() - at < STEADY_SECONDS else 0)
