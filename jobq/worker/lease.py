"""The worker's lease as the process knows it: which id it has, and until when it may be sure of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import timedelta
from time import monotonic


def new_worker_id() -> int:
    """A random number of 63 bits above 0: never used twice."""
    return secrets.randbits(63) or 1


class Lease:
    """Shared by the loop and the heartbeat's thread; every change is one assignment.

    No good beat for a lease's time, counted from when the last good one was sent, means that the rights may be gone.
    """

    def __init__(self, length: timedelta, clock: Callable[[], float] = monotonic) -> None:
        self.length = length
        self.clock = clock
        self.worker_id: int | None = None
        self._seconds = length.total_seconds()
        self._good_from = 0.0

    def begin(self, worker_id: int, *, sent_at: float) -> None:
        """A row of this id was inserted."""
        self._good_from = sent_at
        self.worker_id = worker_id

    def extend(self, worker_id: int, *, sent_at: float) -> None:
        """A beat succeeded."""
        if worker_id == self.worker_id:
            self._good_from = sent_at

    def end(self) -> None:
        """The right is gone or was given up; a new id is needed."""
        self.worker_id = None

    @property
    def seconds_left(self) -> float:
        """Until the lease has run out if no beat succeeds; a whole lease's time while there is no id."""
        return self._seconds if self.worker_id is None else self._seconds - (self.clock() - self._good_from)

    @property
    def has_run_out(self) -> bool:
        """Whether there is an id, and no beat of it has succeeded for a whole lease."""
        return self.worker_id is not None and self.clock() - self._good_from >= self._seconds
