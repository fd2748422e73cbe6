"""For how long an ended job is kept where neither the job nor its handler says so (`keep=`)."""

from __future__ import annotations

from datetime import timedelta

from jobq.model import State

KEEP_DONE = timedelta(hours=24)
KEEP_ENDED = timedelta(days=7)  # dead and cancelled jobs: somebody may want to look at them, and to retry them


def kept_for(state: State, keep: timedelta | None) -> timedelta:
    """`keep` is what the job or its handler says: for done jobs as it is, for the others never less than 7 days."""
    if state is State.DONE:
        return KEEP_DONE if keep is None else keep
    return KEEP_ENDED if keep is None else max(keep, KEEP_ENDED)
