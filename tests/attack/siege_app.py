"""The application of the sieges: that of the chaos tests, one handler more, and a fault in the worker, if asked for."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from apps import app, began

import jobq
from jobq import database, faults, urls
from jobq.worker import claimer, heartbeat, link, transactions

SEED = "SIEGE_SEED"
BRIEF = timedelta(seconds=0.1)


@app.handler("entry", max_attempts=10_000, retry=lambda failures, error: BRIEF)
async def entry() -> None:
    """A line in `books`, in one transaction with the completion."""
    await began()
    job = jobq.current().job
    async with jobq.current().transaction() as session:
        line = {"id": job.id, "attempt": job.attempt}
        await session.execute(sa.text("INSERT INTO books (job_id, attempt) VALUES (:id, :attempt)"), line)


def _gives_up() -> None:
    """Takes a lost connection for something that does not pass."""
    claimer.can_wait_out = lambda error: not faults.is_connection_failure(error) and faults.can_wait_out(error)


def _hurries() -> None:
    """Tries again at once."""
    link.LONGEST_PAUSE_SECONDS = 0.0


def _takes_as_done() -> None:
    """A COMMIT without an answer counts as one that happened."""

    async def settle(*_: Any) -> bool:
        return True

    transactions.Transactions.settle = settle  # type: ignore[method-assign]


def _waits_for_ever() -> None:
    """No keepalive, no limit for an answer."""
    urls.KEEPALIVE = {}
    database.Database.__init__.__kwdefaults__["answer_limit"] = timedelta(days=1)


def _is_impatient() -> None:
    """An answer has half a second, and one that does not come ends the worker."""
    _gives_up()
    database.Database.__init__.__kwdefaults__["answer_limit"] = timedelta(seconds=0.5)
    heartbeat.STATEMENT_LIMIT = timedelta(seconds=0.5)


def _beats_without_limit() -> None:
    """The heartbeat waits for its answer as long as it takes."""
    heartbeat.STATEMENT_LIMIT = timedelta(days=1)
    usual = heartbeat.database_for
    from jobq.worker import assembly

    assembly.database_for = lambda source, _lease, *, name: usual(source, timedelta(days=3), name=name)


SEEDS = {
    "gives_up": _gives_up,
    "hurries": _hurries,
    "takes_as_done": _takes_as_done,
    "waits_for_ever": _waits_for_ever,
    "beats_without_limit": _beats_without_limit,
    "is_impatient": _is_impatient,
}
if seed := os.environ.get(SEED):
    SEEDS[seed]()
