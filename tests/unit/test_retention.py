from __future__ import annotations

from datetime import timedelta

import pytest

from jobq.model import State
from jobq.retention import kept_for

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("state", "keep", "kept"),
    [
        (State.DONE, None, DAY),
        (State.DONE, timedelta(0), timedelta(0)),
        (State.DONE, timedelta(minutes=1), timedelta(minutes=1)),
        (State.DONE, 30 * DAY, 30 * DAY),
        (State.DEAD, None, 7 * DAY),
        (State.DEAD, timedelta(0), 7 * DAY),
        (State.DEAD, 30 * DAY, 30 * DAY),
        (State.CANCELLED, None, 7 * DAY),
        (State.CANCELLED, DAY, 7 * DAY),
        (State.CANCELLED, 30 * DAY, 30 * DAY),
    ],
)
def test_done_jobs_are_kept_as_asked_and_the_others_a_week_at_least(
    state: State, keep: timedelta | None, kept: timedelta
) -> None:
    assert kept_for(state, keep) == kept
