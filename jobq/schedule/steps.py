"""What becomes of ticks that have passed: a pure decision, one step at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from jobq.schedule.base import CatchUp, Passed

MOST_CAUGHT_UP = 100  # ticks with catch_up="all"; older ones are missed
TOLERANCE = timedelta(minutes=1)  # with catch_up="skip": a tick this old is fired still, a worker may be slow


class Fate(StrEnum):
    """What became of a tick. Skipped: the copy before was still open. Missed: nobody was there in time."""

    ENQUEUED = "enqueued"
    SKIPPED = "skipped"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class Step:
    """Settle all ticks up to and with `tick`: `missed` of them are, and it is fired itself or is the last of those."""

    tick: datetime
    missed: int
    fires: bool


def next_step(passed: Passed, *, catch_up: CatchUp, now: datetime, is_open: bool) -> Step | None:
    """The next step for ticks that have passed, None where there is nothing to do yet.

    `is_open`: the copy before still waits or runs. With "all" the next one waits for its end; otherwise the step is
    taken, and the insert finds it out.
    """
    if not passed.count:
        return None
    if catch_up == "all":
        return _one_after_the_other(passed, is_open)
    last = passed.last[-1]
    if catch_up == "skip" and now - last > TOLERANCE:
        return Step(last, passed.count, fires=False)
    return Step(last, passed.count - 1, fires=True)


def _one_after_the_other(passed: Passed, is_open: bool) -> Step | None:
    if passed.count > MOST_CAUGHT_UP:
        return Step(passed.last[-MOST_CAUGHT_UP - 1], passed.count - MOST_CAUGHT_UP, fires=False)
    return None if is_open else Step(passed.last[0], 0, fires=True)
