"""Every statement that writes, against a job in every state: what is not in the table does not happen.

The fence of each write is (id, attempt 3, ME). Whole rows are compared, those of bystanders too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended, add_job, add_worker
from store_rows import ME, MOMENT, OTHER, claim_from

from jobq import admin
from jobq.errors import JobqError
from jobq.handlers import kind
from jobq.model import State
from jobq.producer import enqueue
from jobq.store.ending import Ending, Fence, finish, finish_limited, set_outcome
from jobq.store.leasing import Published, leave, publish, reconcile
from jobq.store.putting_back import give_back, give_back_unknown, pause_and_put_back, put_back
from jobq.store.reporting import report
from jobq.store.rescuing import rescue
from jobq.tables import all_jobs, jobs, workers

# due, later: pending. mine: running here in attempt 3. again: running here in attempt 4. other's: running elsewhere.
# A dot: nothing changes. refused: an error says so, and nothing changes. set: the outcome's text, or meta. new: another
# job.
TABLE = """
                       due       later     mine      again     other's   done      dead      cancelled
claim                  running   .         .         .         .         .         .         .
finish as done         .         .         done      .         .         .         .         .
finish as dead         .         .         dead      .         .         .         .         .
put back, failed       .         .         pending   .         .         .         .         .
put back, snoozed      .         .         pending   .         .         .         .         .
finish, with a slot    .         .         done      .         .         .         .         .
put back, with a slot  .         .         pending   .         .         .         .         .
pause and put back     .         .         pending   .         .         .         .         .
give back              .         .         pending   .         .         .         .         .
give back, unknown     .         .         pending   pending   .         .         .         .
reconcile, held        .         .         .         pending   .         .         .         .
reconcile, not held    .         .         pending   pending   .         .         .         .
leave, held            .         .         pending   .         .         .         .         .
leave, answer lost     .         .         pending   pending   .         .         .         .
set outcome            .         .         .         .         .         set       .         .
report                 .         .         set       .         .         set       .         .
report before an end   .         .         set       .         .         set       .         .
rescue                 .         .         .         .         pending   .         .         .
rescue, spent          .         .         .         .         dead      .         .         .
rescue, interrupted    .         .         .         .         dead      .         .         .
retry by hand          refused   refused   refused   refused   refused   pending   pending   pending
cancel                 cancelled cancelled refused   refused   refused   refused   refused   refused
cancel, running too    cancelled cancelled cancelled cancelled cancelled refused   refused   refused
enqueue with its key   .         .         .         .         .         new       new       new
"""
WIDTH = 23
KEY = "the key"
ERROR = {"attempt": 3, "worker": "w", "error": "ValueError", "message": "no", "traceback": None}
KEEP, DELAY = timedelta(hours=5), timedelta(minutes=7)
OPEN = {"attempt": 3, "failures": 1, "max_attempts": 5, "unique_key": KEY, "args": {"a": 1}, "errors": [{"n": 1}]}

STATES: dict[str, Callable[[sa.Connection], int]] = {
    "due": lambda c: add_job(c, **OPEN, run_at=NOW - MOMENT),
    "later": lambda c: add_job(c, **OPEN, run_at=NOW + timedelta(hours=1)),
    "mine": lambda c: add_job(c, **OPEN, worker_id=ME, attempted_at=NOW - MOMENT),
    "again": lambda c: add_job(c, **{**OPEN, "attempt": 4}, worker_id=ME, attempted_at=NOW - MOMENT),
    "other's": lambda c: add_job(c, **OPEN, worker_id=OTHER, attempted_at=NOW - MOMENT),
    "done": lambda c: add_ended(c, "done", **OPEN, worker_id=ME, outcome="ok: sent"),
    "dead": lambda c: add_ended(c, "dead", **OPEN, worker_id=ME, outcome="err: ValueError: no"),
    "cancelled": lambda c: add_ended(c, "cancelled", **OPEN, worker_id=ME, outcome="err: cancelled"),
}


@dataclass(frozen=True)
class Clock:
    """The time of the test's transaction: as a value, and as JSON writes it."""

    now: Any
    text: str


Change = Callable[[dict[str, Any], Clock], dict[str, Any]]


@dataclass(frozen=True)
class Operation:
    """What is called, and what it changes of a row that the table lets it change."""

    call: Callable[[sa.Connection, int], object]
    changes: Change
    prepare: Callable[[sa.Connection, int], object] = lambda connection, id_: None


def ended(state: str, outcome: str | None, keep: timedelta) -> Change:
    return lambda row, clock: {
        "state": state, "outcome": outcome, "finished_at": clock.now, "expires_at": clock.now + keep,
    }  # fmt: skip


def given(row: dict[str, Any], clock: Clock) -> dict[str, Any]:
    return {"state": "pending", "worker_id": None}


def failed(error: dict[str, Any]) -> Change:
    return lambda row, clock: {
        "failures": row["failures"] + 1,
        "errors": [*row["errors"], {**error, "attempt": row["attempt"], "at": clock.text}],
    }


def run_at(delay: timedelta) -> Change:
    return lambda row, clock: {"run_at": clock.now + delay}


def claimed(row: dict[str, Any], clock: Clock) -> dict[str, Any]:
    return {"state": "running", "worker_id": ME, "attempt": row["attempt"] + 1, "attempted_at": clock.now}


def fresh(row: dict[str, Any], clock: Clock) -> dict[str, Any]:
    gone = {"outcome": None, "finished_at": None, "expires_at": None}
    return {**given(row, clock), **gone, "failures": 0, "run_at": clock.now}


def told(row: dict[str, Any], clock: Clock) -> dict[str, Any]:
    return {"outcome": "ok: y"}


SAID = '{"progress": {"fraction": 0.5}}'


def reported(row: dict[str, Any], clock: Clock) -> dict[str, Any]:
    return {"meta": {**row["meta"], **json.loads(SAID)}}


def nothing(row: dict[str, Any], clock: Clock) -> dict[str, Any]:
    return {}


def all_of(*changes: Change) -> Change:
    return lambda row, clock: {name: value for change in changes for name, value in change(row, clock).items()}


def fence(id_: int) -> Fence:
    return Fence(id_, 3, ME)


def lose_other(connection: sa.Connection, id_: int) -> None:
    lost = sa.update(workers).where(workers.c.id == OTHER)
    connection.execute(lost.values(lease=MOMENT, lease_until=NOW - MOMENT))


def lose_other_when_spent(connection: sa.Connection, id_: int) -> None:
    lose_other(connection, id_)
    connection.execute(sa.update(jobs).where(jobs.c.id == id_).values(max_attempts=2))


def lose_other_when_it_must_not(connection: sa.Connection, id_: int) -> None:
    lose_other(connection, id_)
    publish(connection, [Published("email.send", "default", 5, None, None, "fail")], [])


def rescue_now(connection: sa.Connection, id_: int) -> object:
    return rescue(connection, connected_for=timedelta(days=9), look_everywhere=True, channel="jobq")


WEEK = timedelta(days=7)
LOST_ERROR = {
    "worker": f"host:{OTHER}", "error": "WorkerLost", "traceback": None,
    "message": "worker lost: its lease ran out while it held the job",
}  # fmt: skip
FAILED, TAKEN = failed(ERROR), failed(LOST_ERROR)
TEXT = json.dumps(ERROR)

OPERATIONS: dict[str, Operation] = {
    "claim": Operation(lambda c, id_: claim_from(c), claimed),
    "finish as done": Operation(
        lambda c, id_: finish(c, [Ending(fence(id_), State.DONE, "ok: x", keep=KEEP)]), ended("done", "ok: x", KEEP)
    ),
    "finish as dead": Operation(
        lambda c, id_: finish(c, [Ending(fence(id_), State.DEAD, "err: x", TEXT, keep=KEEP)]),
        all_of(FAILED, ended("dead", "err: x", KEEP)),
    ),
    "put back, failed": Operation(
        lambda c, id_: put_back(c, Ending(fence(id_), State.PENDING, "err: x", TEXT, DELAY)),
        all_of(FAILED, given, run_at(DELAY)),
    ),
    "put back, snoozed": Operation(
        lambda c, id_: put_back(c, Ending(fence(id_), State.PENDING, delay=DELAY)), all_of(given, run_at(DELAY))
    ),
    "finish, with a slot": Operation(
        lambda c, id_: finish_limited(c, Ending(fence(id_), State.DONE, "ok: x", keep=KEEP, slot_wait=DELAY)),
        ended("done", "ok: x", KEEP),
    ),
    "put back, with a slot": Operation(
        lambda c, id_: put_back(c, Ending(fence(id_), State.PENDING, "err: x", TEXT, slot_wait=DELAY)),
        all_of(FAILED, given),
    ),
    "pause and put back": Operation(
        lambda c, id_: pause_and_put_back(
            c, Ending(fence(id_), State.PENDING, pause=DELAY), queue="default", channel="jobq"
        ),
        given,
    ),
    "give back": Operation(lambda c, id_: give_back(c, [fence(id_)], channel="jobq"), given),
    "give back, unknown": Operation(
        lambda c, id_: give_back_unknown(c, worker_id=ME, held=[], channel="jobq"), given
    ),
    "reconcile, held": Operation(lambda c, id_: reconcile(c, worker_id=ME, held=[fence(id_)], channel="jobq"), given),
    "reconcile, not held": Operation(lambda c, id_: reconcile(c, worker_id=ME, held=[], channel="jobq"), given),
    "leave, held": Operation(lambda c, id_: leave(c, worker_id=ME, held=[fence(id_)], channel="jobq"), given),
    "leave, answer lost": Operation(lambda c, id_: leave(c, worker_id=ME, held=None, channel="jobq"), given),
    "set outcome": Operation(lambda c, id_: set_outcome(c, fence(id_), "ok: y"), told),
    "report": Operation(lambda c, id_: report(c, {fence(id_): SAID}, waits=False), reported),
    "report before an end": Operation(lambda c, id_: report(c, {fence(id_): SAID}, waits=True), reported),
    "rescue": Operation(rescue_now, all_of(TAKEN, given), lose_other),
    "rescue, spent": Operation(
        rescue_now,
        all_of(TAKEN, given, ended("dead", "err: WorkerLost: worker lost", WEEK)),
        lose_other_when_spent,
    ),
    "rescue, interrupted": Operation(
        rescue_now, all_of(TAKEN, given, ended("dead", "err: interrupted", WEEK)), lose_other_when_it_must_not
    ),
    "retry by hand": Operation(lambda c, id_: admin.retry(c, id_), fresh),
    "cancel": Operation(lambda c, id_: admin.cancel(c, id_), ended("cancelled", "err: cancelled", WEEK)),
    "cancel, running too": Operation(
        lambda c, id_: admin.cancel(c, id_, running=True), ended("cancelled", "err: cancelled", WEEK)
    ),
    "enqueue with its key": Operation(
        lambda c, id_: enqueue(c, kind("email.send", queue="default").options(unique_key=KEY)), nothing
    ),
}  # fmt: skip


def cells() -> list[Any]:
    """The table, cell by cell: operation, state, fate."""
    head, *lines = TABLE.strip("\n").splitlines()
    return [
        pytest.param(line[:WIDTH].strip(), state, fate, id=f"{line[:WIDTH].strip()}-{state}")
        for line in lines
        for state, fate in zip(head.split(), line[WIDTH:].split(), strict=True)
    ]


def everything(connection: sa.Connection) -> dict[int, dict[str, Any]]:
    """Every job of both tables by its id, in one of them."""
    rows = [dict(row) for row in connection.execute(sa.select(*all_jobs.c)).mappings()]
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def add_bystanders(connection: sa.Connection) -> None:
    """A job in every state that nothing here is about."""
    apart = {"queue": "apart", "kind": "apart"}
    for worker_id in (None, 44):
        add_job(connection, **apart, worker_id=worker_id, attempt=3)
    for state in ("done", "dead", "cancelled"):
        add_ended(connection, state, **apart, worker_id=44, attempt=3)


@pytest.mark.parametrize(("operation", "state", "fate"), cells())
def test_only_the_transitions_of_the_table_happen(
    connection: sa.Connection, operation: str, state: str, fate: str
) -> None:
    for worker_id in (ME, OTHER, 44):
        add_worker(connection, worker_id)
    add_bystanders(connection)
    id_ = STATES[state](connection)
    tried = OPERATIONS[operation]
    tried.prepare(connection, id_)
    clock = Clock(*connection.execute(sa.select(NOW, sa.func.to_jsonb(NOW))).one())
    before = everything(connection)

    if fate == "refused":
        with pytest.raises(JobqError):
            tried.call(connection, id_)
    else:
        tried.call(connection, id_)

    after = everything(connection)
    added = [after.pop(each) for each in set(after) - set(before)]
    assert [(row["state"], row["unique_key"]) for row in added] == ([("pending", KEY)] if fate == "new" else [])
    changes = tried.changes(before[id_], clock) if fate not in (".", "refused", "new") else {}
    assert changes.get("state", before[id_]["state"]) == (fate if fate in set(State) else before[id_]["state"])
    if operation.startswith("finish") and changes:  # the time of the statement, not of its transaction
        changes["finished_at"] = max(after[id_]["finished_at"], clock.now)
    assert after == {**before, id_: {**before[id_], **changes}}


def test_the_table_names_every_operation_and_every_state() -> None:
    named = [param.values for param in cells()]

    assert list(dict.fromkeys(operation for operation, _, _ in named)) == list(OPERATIONS)
    assert list(dict.fromkeys(state for _, state, _ in named)) == list(STATES)
    assert len(named) == len(OPERATIONS) * len(STATES)
