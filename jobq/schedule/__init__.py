"""When periodic jobs are due: pure values, no clock and no database (DESIGN.md, Schedules)."""

from __future__ import annotations

from jobq.schedule.base import CatchUp, Form, Passed, Schedule
from jobq.schedule.crontab import Cron, cron
from jobq.schedule.interval import Every, every
from jobq.schedule.predicate import Predicate, When, when
from jobq.schedule.rows import schedule_of
from jobq.schedule.steps import MOST_CAUGHT_UP, TOLERANCE, Fate, Step, next_step
from jobq.schedule.watch import Watch

__all__ = [
    "MOST_CAUGHT_UP",
    "TOLERANCE",
    "CatchUp",
    "Cron",
    "Every",
    "Fate",
    "Form",
    "Passed",
    "Predicate",
    "Schedule",
    "Step",
    "Watch",
    "When",
    "cron",
    "every",
    "next_step",
    "schedule_of",
    "when",
]
