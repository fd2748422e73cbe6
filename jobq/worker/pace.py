"""How far ahead of its free slots a worker claims. A decision, no I/O."""

from __future__ import annotations

AHEAD_SECONDS = 0.02  # of work at the measured pace: a claim and its way there and back take less
MOST_AHEAD = 1_000
WEIGHT = 0.1  # of the newest duration in the mean: 40 quick jobs after a slow one show that jobs are quick again
UNKNOWN_SECONDS = 1.0  # as if jobs were slow, until they have shown otherwise


class Pace:
    """The mean duration of the last jobs, weighted exponentially."""

    def __init__(self) -> None:
        self._mean = UNKNOWN_SECONDS

    def ended(self, seconds: float) -> None:
        """A job took so long."""
        self._mean += (seconds - self._mean) * WEIGHT

    def forget(self) -> None:
        """Jobs that were claimed ahead did not get to start: claim none ahead until jobs end quickly again."""
        self._mean = UNKNOWN_SECONDS

    def ahead(self, slots: int) -> int:
        """How many jobs to hold beyond those that run in `slots`; none of jobs that take longer than that time."""
        if self._mean > AHEAD_SECONDS:
            return 0
        return min(MOST_AHEAD, round(slots * AHEAD_SECONDS / max(self._mean, 1e-6)))
