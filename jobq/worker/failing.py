"""Schedules that fail, by the database's word or by what their own predicate raises."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from time import monotonic

from jobq.events import ErrorEvent, tell
from jobq.faults import said_briefly
from jobq.schedule import Schedule, When
from jobq.worker.link import Link

logger = logging.getLogger("jobq.worker")
LONGEST_PAUSE = timedelta(minutes=1)


class Failing:
    """One record and one ErrorEvent for a run of failures of a schedule, which is tried again ever later."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._failing: dict[str, tuple[int, float]] = {}  # how often in a row, and when to try again

    def seconds_left(self, name: str) -> float:
        """How long to leave a schedule alone still."""
        return self._failing[name][1] - monotonic() if name in self._failing else 0.0

    def note(self, name: str, error: Exception) -> None:
        times = self._failing[name][0] + 1 if name in self._failing else 1
        seconds = min(LONGEST_PAUSE.total_seconds(), 2.0 ** min(times - 1, 10))
        self._failing[name] = (times, monotonic() + seconds)
        if times == 1:
            logger.error("schedule %s cannot be fired: %s; the others go on", name, said_briefly(error))
            tell(self._link.callbacks(), ErrorEvent(job=None, error=error, attempt=None, final=False))

    def worked(self, names: Iterable[str]) -> None:
        for name in self._failing.keys() & set(names):
            del self._failing[name]
            logger.warning("schedule %s can be fired again", name)


def guarded(schedule: Schedule, name: str, failing: Failing) -> Schedule:
    """A minute at which a predicate raises is none of its ticks: asked again it would raise again, for ever."""
    if not isinstance(schedule, When):
        return schedule
    predicate = schedule.predicate

    def answer(minute: datetime) -> bool:
        try:
            is_tick = bool(predicate(minute))
        except Exception as error:
            failing.note(name, error)
            return False
        failing.worked([name])
        return is_tick

    return replace(schedule, predicate=answer)
