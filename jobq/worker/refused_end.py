"""What becomes of an end that the server refuses to store. A decision, no I/O."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy.exc as sa_exc

from jobq.describe import as_json, describe
from jobq.faults import sqlstate
from jobq.model import State
from jobq.retention import kept_for
from jobq.store.ending import Ending
from jobq.verdict import Ended, Verdict, judge
from jobq.worker.entries import Entry

UNTRANSLATABLE = "22P05"


def reason_of(entry: Entry, error: sa_exc.DBAPIError) -> RuntimeError:
    """Why, in words that the server has no part in: its own may hold what it refuses."""
    return RuntimeError(f"the result could not be stored: SQLSTATE {sqlstate(error)}{_in_ascii(entry, error)}")


def as_failure(entry: Entry, reason: Exception, *, worker: str) -> Entry:
    """The attempt fails with that, and all that would be stored besides is left out."""
    held, job = entry.held, entry.held.job
    settings = held.handler.settings
    verdict = judge(
        Ended(error=reason),
        failures=job.failures,
        max_attempts=held.max_attempts,
        retry=settings.retry,
        no_retry_on=settings.no_retry_on,
    )
    error = as_json(describe(reason, attempt=job.attempt, worker=worker))
    return replace(entry, ending=_ending(entry, verdict, error), verdict=verdict)


def _ending(entry: Entry, verdict: Verdict, error: str) -> Ending:
    """In a FIFO queue the slot waits in place of the job."""
    keep, slot_wait = kept_for(State.DEAD, None), entry.ending.slot_wait
    ending = Ending(entry.held.fence, verdict.state, verdict.outcome, error, verdict.delay, keep, slot_wait)
    if entry.held.job.in_order and slot_wait is not None and ending.delay is not None:
        return replace(ending, delay=None, slot_wait=max(slot_wait, ending.delay))
    return ending


def _in_ascii(entry: Entry, error: sa_exc.DBAPIError) -> str:
    """What was to be said, where the database's encoding lacks a letter of it: any has those of ASCII."""
    if sqlstate(error) != UNTRANSLATABLE or entry.ending.outcome is None:
        return ""
    return f" ({ascii(entry.ending.outcome)[1:-1]})"
