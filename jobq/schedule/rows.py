"""A schedule from what the database holds of it, for those who have not its code."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from jobq.errors import JobqError
from jobq.schedule.base import Schedule
from jobq.schedule.crontab import cron
from jobq.schedule.interval import every


def schedule_of(form: str, expression: str, tz: str) -> Schedule | None:
    """None for a predicate, which lives in code alone, and for what this version cannot read."""
    readers: dict[str, Any] = {"every": _every, "cron": cron}
    if form not in readers:
        return None
    try:
        schedule: Schedule = readers[form](expression, tz=tz)
    except (JobqError, ValueError, OverflowError):
        return None
    return schedule


def _every(expression: str, *, tz: str) -> Schedule:
    return every(timedelta(seconds=float(expression)), tz=tz)
