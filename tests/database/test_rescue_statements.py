"""Taking back what lost workers held: whom it declares dead, what becomes of each job, what it steps over."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_job, add_worker
from store_rows import (
    LONG,
    LOST,
    ME,
    MOMENT,
    OTHER,
    add_lost_worker,
    add_running,
    add_slot,
    claim_from,
    listening,
    rescued,
    rescued_ids,
    row,
    running_on,
    slot_holders,
    workers_left,
)

from jobq.model import State
from jobq.store.leasing import Published, beat, publish
from jobq.store.rescuing import Rescue, Rescued, lost_workers

HOUR = timedelta(hours=1)


def of_kind(connection: sa.Connection, kind: str, *, max_attempts: int = 5, on_interrupt: str = "retry") -> str:
    publish(connection, [Published(kind, "default", max_attempts, None, None, on_interrupt)], [])
    return kind


def test_a_lost_workers_jobs_are_pending_again_with_one_failure_more(connection: sa.Connection) -> None:
    add_lost_worker(connection, name="host:33")
    add_worker(connection, OTHER)
    lost = add_running(connection, LOST, attempt=3, failures=1, run_at=NOW - HOUR, unique_key="k", errors=[{"n": 1}])
    alive, waiting = add_running(connection, OTHER), add_job(connection)
    before = {each: row(connection, each) for each in (lost.id, alive.id, waiting)}

    found = rescued(connection)

    assert found == Rescue((Rescued(lost.id, "email.send", 3, State.PENDING),), ("host:33",), is_complete=True)
    assert workers_left(connection) == {OTHER}
    after = row(connection, lost.id)
    first, error = after["errors"]
    assert first == {"n": 1}
    assert connection.scalar(sa.select(sa.cast(error.pop("at"), sa.TIMESTAMP(timezone=True)) == NOW))
    assert error == {
        "attempt": 3, "worker": "host:33", "error": "WorkerLost", "traceback": None,
        "message": "worker lost: its lease ran out while it held the job",
    }  # fmt: skip
    expected = {**before[lost.id], "state": "pending", "worker_id": None, "failures": 2, "errors": after["errors"]}
    assert after == expected
    assert [row(connection, each) for each in (alive.id, waiting)] == [before[alive.id], before[waiting]]


@pytest.mark.parametrize(
    ("values", "connected", "is_lost"),
    [
        ({"lease": MOMENT, "lease_until": NOW - MOMENT}, LONG, True),
        ({"lease": MOMENT, "lease_until": NOW}, LONG, False),
        ({"lease": MOMENT, "lease_until": NOW + HOUR}, LONG, False),
        ({"lease": timedelta(days=3000), "lease_until": NOW - HOUR}, LONG, False),
        ({"lease": timedelta(milliseconds=100), "lease_until": NOW - HOUR}, timedelta(milliseconds=100), False),
        ({"lease": timedelta(milliseconds=100), "lease_until": NOW - HOUR}, timedelta(milliseconds=101), True),
        ({"lease": timedelta(milliseconds=100), "lease_until": NOW - HOUR}, timedelta(0), False),
    ],
    ids=[
        "its lease ran out",
        "it runs out now",
        "it holds",
        "within a lease of the server's start",
        "within a lease of the rescuer's connection",
        "just past that",
        "connected only now",
    ],
)
def test_a4_a_worker_is_lost_only_by_its_own_lease_and_not_right_after_an_outage(
    connection: sa.Connection, values: dict[str, Any], connected: timedelta, is_lost: bool
) -> None:
    add_worker(connection, LOST, **values)
    held = add_running(connection, LOST, max_attempts=1)
    before = row(connection, held.id)
    assert lost_workers(connection, connected_for=connected).lost == int(is_lost)

    found = rescued(connection, everywhere=True, connected=connected)

    assert rescued_ids(found) == ({held.id} if is_lost else set())
    assert workers_left(connection) == (set() if is_lost else {LOST})
    assert (row(connection, held.id) == before) is not is_lost


SPENT: dict[str, tuple[dict[str, Any], int | None, State]] = {
    "one left": ({"failures": 3, "max_attempts": 5}, None, State.PENDING),
    "the last": ({"failures": 4, "max_attempts": 5}, None, State.DEAD),
    "the only": ({"failures": 0, "max_attempts": 1}, None, State.DEAD),
    "long past": ({"failures": 7, "max_attempts": 5}, None, State.DEAD),
    "of a kind, one left": ({"failures": 1}, 3, State.PENDING),
    "of a kind, the last": ({"failures": 2}, 3, State.DEAD),
    "of no kind, one left": ({"failures": 3}, None, State.PENDING),
    "of no kind, the last": ({"failures": 4}, None, State.DEAD),
    "the job's own word wins": ({"failures": 2, "max_attempts": 9}, 3, State.PENDING),
}


@pytest.mark.parametrize(("values", "of_its_kind", "state"), SPENT.values(), ids=SPENT)
def test_f14_a_job_out_of_attempts_is_dead_and_says_that_its_worker_was_lost(
    connection: sa.Connection, values: dict[str, Any], of_its_kind: int | None, state: State
) -> None:
    add_lost_worker(connection)
    if of_its_kind is not None:
        of_kind(connection, "email.send", max_attempts=of_its_kind)
    held = add_running(connection, LOST, **values)

    found = rescued(connection)

    assert [job.state for job in found.jobs] == [state]
    after = row(connection, held.id)
    assert (after["state"], after["failures"], after["worker_id"]) == (state, values["failures"] + 1, None)
    assert [error["error"] for error in after["errors"]] == ["WorkerLost"]
    if state is State.DEAD:
        assert after["outcome"] == "err: WorkerLost: worker lost"
        assert after["finished_at"] == connection.scalar(sa.select(NOW))
        assert after["expires_at"] - after["finished_at"] == timedelta(days=7)


def test_f14_a_job_that_kills_its_worker_starts_as_often_as_it_may_and_then_is_dead(connection: sa.Connection) -> None:
    id_ = add_job(connection, max_attempts=3)
    starts = 0

    for worker_id in range(100, 110):
        add_lost_worker(connection, worker_id)
        starts += len(claim_from(connection, worker_id=worker_id).jobs)
        rescued(connection)

    after = row(connection, id_)
    assert starts == 3
    assert (after["state"], after["failures"], after["attempt"]) == ("dead", 3, 3)
    assert [error["attempt"] for error in after["errors"]] == [1, 2, 3]


def test_a_job_that_may_not_be_interrupted_is_dead_with_attempts_left(connection: sa.Connection) -> None:
    add_lost_worker(connection)
    of_kind(connection, "charge", on_interrupt="fail")
    charge, spent = (add_running(connection, LOST, kind="charge", failures=n) for n in (0, 4))
    other = add_running(connection, LOST)

    found = rescued(connection)

    assert {job.id: job.state for job in found.jobs} == {
        charge.id: State.DEAD,
        spent.id: State.DEAD,
        other.id: State.PENDING,
    }
    assert row(connection, charge.id)["outcome"] == row(connection, spent.id)["outcome"] == "err: interrupted"
    assert row(connection, charge.id)["failures"] == 1


def test_of_a_long_history_the_oldest_error_is_dropped(connection: sa.Connection) -> None:
    add_lost_worker(connection)
    held = add_running(connection, LOST, max_attempts=100, errors=[{"error": str(n)} for n in range(25)])

    rescued(connection)

    errors = [error["error"] for error in row(connection, held.id)["errors"]]
    assert errors == [*(str(n) for n in range(1, 25)), "WorkerLost"]


def test_f26_jobs_of_a_worker_whose_row_is_gone_are_found_by_looking_everywhere(connection: sa.Connection) -> None:
    add_worker(connection, OTHER)
    orphan, held = add_running(connection, LOST), add_running(connection, OTHER)

    assert rescued(connection) == Rescue()

    found = rescued(connection, everywhere=True)
    assert rescued_ids(found) == {orphan.id}
    assert found.lost_workers == ()
    assert row(connection, orphan.id)["errors"][0]["worker"] == f"worker {LOST}"
    assert running_on(connection, OTHER) == [held.id]


def test_f26_a_restarted_worker_of_the_same_name_keeps_nothing_of_the_dead_one_alive(
    connection: sa.Connection,
) -> None:
    add_lost_worker(connection, name="pod-0")
    add_worker(connection, OTHER, name="pod-0")
    held = add_running(connection, LOST)
    assert beat(connection, OTHER)

    assert rescued_ids(rescued(connection)) == {held.id}


def test_a_pass_that_finds_a_lost_worker_finds_the_orphans_of_others_too(connection: sa.Connection) -> None:
    add_lost_worker(connection, ME)
    orphan = add_running(connection, LOST)

    assert rescued_ids(rescued(connection)) == {orphan.id}


def test_nothing_to_do_is_a_complete_pass(connection: sa.Connection) -> None:
    add_worker(connection, OTHER)
    add_running(connection, OTHER)

    assert rescued(connection, everywhere=True) == Rescue()
    assert rescued(connection) == Rescue()


def test_slots_of_lost_workers_are_freed_and_those_of_others_kept(connection: sa.Connection) -> None:
    add_lost_worker(connection)
    add_worker(connection, OTHER)
    held = add_running(connection, LOST, queue="a")
    for queue, holder in (("a", LOST), ("b", OTHER), ("c", None), ("d", LOST)):
        add_slot(connection, queue, holder)

    assert rescued_ids(rescued(connection)) == {held.id}

    assert slot_holders(connection) == {"a": None, "b": OTHER, "c": None, "d": None}


def test_a_slot_without_a_job_is_freed_by_looking_everywhere(connection: sa.Connection) -> None:
    add_slot(connection, "a", LOST)

    assert rescued(connection, everywhere=True).is_complete

    assert slot_holders(connection) == {"a": None}


def test_the_fleet_is_told_where_jobs_wait_again_and_nothing_of_dead_ones(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_lost_worker(connection)
        for seconds in (3, 1, 2):
            add_running(connection, LOST, run_at=sa.func.to_timestamp(1_000_000_000 + seconds))
        add_running(connection, LOST, queue="dead", max_attempts=1)

    with listening(engine) as told:
        with engine.begin() as connection:
            assert len(rescued(connection, channel="jobq").jobs) == 4
        assert told() == ["default|1|1000000001.000000"]
