"""A worker's row: register, publish, beat, reconcile, leave."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_job, add_worker
from store_rows import ME, OTHER, add_running, add_slot, claim_from, in_thread, listening, row, running_on, slot_holders

from jobq.model import Position
from jobq.store.leasing import (
    Published,
    PublishedQueue,
    Registration,
    beat,
    capacity,
    leave,
    lost_of,
    publish,
    reconcile,
    register,
)
from jobq.tables import jobs, kinds, queues, workers

LEASE = timedelta(seconds=60)
REGISTRATION = Registration(
    id=ME, name="host:1", hostname="host", pid=1, version="0.1", queues=["a", "b"], kinds=["email.send"],
    concurrency=20, lease=LEASE,
)  # fmt: skip
PUBLISHED = Published("email.send", "email", 8, timedelta(seconds=30), None, "retry")


def only(connection: sa.Connection, table: sa.Table) -> dict[str, Any]:
    return dict(connection.execute(sa.select(table)).mappings().one())


def now(connection: sa.Connection) -> Any:
    return connection.execute(sa.select(NOW)).scalar_one()


@pytest.mark.parametrize("served", [None, ["a", "b"]], ids=["every queue", "some"])
def test_a_worker_joins_with_a_lease_from_now_on(connection: sa.Connection, served: list[str] | None) -> None:
    register(connection, replace(REGISTRATION, queues=served))

    at = now(connection)
    assert only(connection, workers) == {
        "id": ME, "name": "host:1", "hostname": "host", "pid": 1, "version": "0.1", "queues": served,
        "kinds": ["email.send"], "schedules": [], "concurrency": 20, "started_at": at,
        "lease": LEASE, "lease_until": at + LEASE, "left_behind": 0,
    }  # fmt: skip


def test_f26_an_id_is_never_used_by_two_workers(connection: sa.Connection) -> None:
    register(connection, REGISTRATION)

    with pytest.raises(sa.exc.IntegrityError), connection.begin_nested():
        register(connection, replace(REGISTRATION, name="another"))


def test_a_beat_extends_the_lease_of_this_worker_alone(connection: sa.Connection) -> None:
    for worker_id in (ME, OTHER):
        add_worker(connection, worker_id, lease=LEASE, lease_until=NOW - LEASE)

    assert beat(connection, ME) is True

    until = dict(connection.execute(sa.select(workers.c.id, workers.c.lease_until)).all())
    assert until == {ME: now(connection) + LEASE, OTHER: now(connection) - LEASE}


def test_a_beat_says_how_many_handlers_could_not_be_stopped(connection: sa.Connection) -> None:
    add_worker(connection, ME)

    beat(connection, ME, left_behind=3)

    assert only(connection, workers)["left_behind"] == 3


def test_f26_a_beat_of_a_worker_that_was_declared_dead_says_so_and_brings_nothing_back(
    connection: sa.Connection,
) -> None:
    add_worker(connection, OTHER, name="host:11")

    assert beat(connection, ME) is False

    assert only(connection, workers)["id"] == OTHER


def test_a_worker_is_told_which_of_its_jobs_are_no_longer_its_own(connection: sa.Connection) -> None:
    mine = add_running(connection, attempt=2)
    rescued, retaken = add_running(connection), add_running(connection, attempt=4)
    cancelled = add_running(connection)
    connection.execute(sa.update(jobs).where(jobs.c.id == rescued.id).values(worker_id=OTHER))
    connection.execute(sa.update(jobs).where(jobs.c.id == retaken.id).values(attempt=5))
    connection.execute(sa.delete(jobs).where(jobs.c.id == cancelled.id))

    lost = lost_of(connection, [cancelled, retaken, mine, rescued])

    assert lost == {rescued, retaken, cancelled}
    assert lost_of(connection, []) == set()


def test_a1_reconcile_gives_back_what_the_worker_does_not_know_of(connection: sa.Connection) -> None:
    add_worker(connection, ME)
    known, unknown = add_running(connection, failures=1), add_running(connection, failures=1, queue="email")
    before = row(connection, unknown.id)

    positions = reconcile(connection, worker_id=ME, held=[known], channel=None)

    assert positions == [Position("email", 1, before["run_at"])]
    assert row(connection, unknown.id) == {**before, "state": "pending", "worker_id": None}
    assert running_on(connection, ME) == [known.id]


def test_a1_reconcile_waits_for_a_claim_in_flight(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_worker(connection, ME)
        id_ = add_job(connection)

    with engine.connect() as claimer:
        assert len(claim_from(claimer).jobs) == 1
        with in_thread(engine, lambda c: reconcile(c, worker_id=ME, held=[], channel="jobq")) as reconciled:
            assert not reconciled.done()
            claimer.commit()
            assert len(reconciled.result(timeout=30)) == 1

    with engine.connect() as connection:
        found = row(connection, id_)
        assert (found["state"], found["attempt"], found["failures"]) == ("pending", 1, 0)


def test_leaving_gives_back_what_is_held_and_frees_the_slots(connection: sa.Connection) -> None:
    add_worker(connection, ME)
    add_worker(connection, OTHER)
    held, unknown, others = add_running(connection), add_running(connection), add_running(connection, OTHER)
    for queue, worker_id in (("mine", ME), ("theirs", OTHER), ("free", None)):
        add_slot(connection, queue, worker_id)

    assert leave(connection, worker_id=ME, held=[held], channel=None) == 1

    assert only(connection, workers)["id"] == OTHER
    assert slot_holders(connection) == {"mine": None, "theirs": OTHER, "free": None}
    assert row(connection, held.id)["state"] == "pending"
    assert row(connection, others.id)["state"] == "running"
    assert running_on(connection, ME) == [unknown.id]  # carried by an id that is gone: a rescue looks for it


def test_a3_leaving_after_a_lost_answer_gives_back_all_that_carries_the_id(connection: sa.Connection) -> None:
    add_worker(connection, ME)
    fences = [add_running(connection, failures=n) for n in (0, 3)]

    assert leave(connection, worker_id=ME, held=None, channel=None) == 2

    assert [row(connection, fence.id)["failures"] for fence in fences] == [0, 3]
    assert running_on(connection, ME) == []


def test_a_worker_that_was_declared_dead_leaves_without_a_word(connection: sa.Connection) -> None:
    assert leave(connection, worker_id=ME, held=[], channel="jobq") == 0
    assert leave(connection, worker_id=ME, held=None, channel="jobq") == 0


def test_a3_leaving_waits_for_a_claim_in_flight_so_that_none_of_its_jobs_is_left_running(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_worker(connection, ME)
        id_ = add_job(connection)

    with engine.connect() as claimer:
        assert len(claim_from(claimer).jobs) == 1
        with in_thread(engine, lambda c: leave(c, worker_id=ME, held=None, channel=None)) as left:
            claimer.commit()
            assert left.result(timeout=30) == 1

    with engine.connect() as connection:
        assert row(connection, id_)["state"] == "pending"


def test_a3_no_claim_follows_once_the_worker_has_left(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_worker(connection, ME)
        id_ = add_job(connection)

    with engine.connect() as leaver:
        leave(leaver, worker_id=ME, held=None, channel=None)
        with in_thread(engine, claim_from) as late:
            leaver.commit()
            assert late.result(timeout=30).jobs == ()

    with engine.connect() as connection:
        assert row(connection, id_)["state"] == "pending"


def test_leaving_writes_in_the_order_that_leaves_no_orphan(connection: sa.Connection) -> None:
    add_worker(connection, ME)
    fence = add_running(connection)
    sent: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        sent.append(" ".join(statement.split()[:3]))

    sa.event.listen(connection, "before_cursor_execute", note)
    leave(connection, worker_id=ME, held=[fence], channel="jobq")
    sa.event.remove(connection, "before_cursor_execute", note)

    writes = [text for text in sent if not text.startswith("SELECT")]
    assert writes == [
        "DELETE FROM jobq.workers",
        "UPDATE jobq.jobs SET",
        "UPDATE jobq.slots SET",
        "UPDATE jobq.leader SET",
    ]


def test_leaving_tells_the_fleet_where_jobs_wait_again(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_worker(connection, ME)
        fences = [add_running(connection, run_at=sa.func.to_timestamp(1_000_000_000 + n)) for n in (2, 1)]

    with listening(engine) as told:
        with engine.begin() as connection:
            leave(connection, worker_id=ME, held=fences, channel="jobq")
        assert told() == ["default|1|1000000001.000000"]


def test_kinds_are_published_and_written_again_only_where_they_differ(connection: sa.Connection) -> None:
    publish(connection, [PUBLISHED], [])
    first = connection.execute(sa.select(sa.literal_column("xmin::text"), kinds)).one()
    assert only(connection, kinds) == {
        "kind": "email.send", "queue": "email", "max_attempts": 8, "timeout": timedelta(seconds=30), "keep": None,
        "on_interrupt": "retry", "priority": 1, "unique_names": None, "secrets": None,
        "updated_at": now(connection),
    }  # fmt: skip

    publish(connection, [PUBLISHED], [])
    assert connection.execute(sa.select(sa.literal_column("xmin::text"), kinds)).one() == first

    publish(connection, [replace(PUBLISHED, timeout=None, on_interrupt="fail", max_attempts=2)], [])
    changed = only(connection, kinds)
    assert (changed["timeout"], changed["on_interrupt"], changed["max_attempts"]) == (None, "fail", 2)


def test_a_published_kind_that_does_not_differ_is_not_a_new_version_of_its_row(engine: sa.Engine) -> None:
    def version() -> Any:
        with engine.begin() as connection:
            publish(connection, [PUBLISHED], [PublishedQueue("email", 1)])
            return connection.execute(sa.select(sa.literal_column("xmin::text")).select_from(kinds)).scalar_one()

    assert version() == version()


WHOLE = (queues.c.name, queues.c.weight, queues.c.fifo, queues.c.concurrency)
SAID = {
    "nothing there": (None, PublishedQueue("q", 3), (3, None, None)),
    "a limit, nothing there": (None, PublishedQueue("q", 3, True), (3, True, None)),
    "only a pause there": ({}, PublishedQueue("q", 3, False, 4), (3, False, 4)),
    "a weight there": ({"weight": 9}, PublishedQueue("q", 3), (9, None, None)),
    "a weight there, and a limit comes": ({"weight": 9}, PublishedQueue("q", 3, True), (9, True, None)),
    "a limit there": ({"fifo": False, "concurrency": 2}, PublishedQueue("q", 3, True), (3, False, 2)),
    "no limit, said by hand": ({"fifo": False}, PublishedQueue("q", 3, True), (3, False, None)),
    "a limit there that this code does not know": (
        {"weight": 1, "fifo": True},
        PublishedQueue("q", 1),
        (1, True, None),
    ),
}


@pytest.mark.parametrize(("there", "published", "wanted"), SAID.values(), ids=SAID)
def test_what_the_database_says_of_a_queue_wins_over_the_code(
    connection: sa.Connection, there: dict[str, Any] | None, published: PublishedQueue, wanted: tuple[Any, ...]
) -> None:
    if there is not None:
        connection.execute(sa.insert(queues).values(name="q", **there))

    publish(connection, [], [published])

    assert connection.execute(sa.select(*WHOLE)).one() == ("q", *wanted)


def test_the_room_for_connections_is_what_ordinary_users_may_have(connection: sa.Connection) -> None:
    most, used = capacity(connection)

    asked = connection.execute(sa.text("SELECT current_setting('max_connections')::int")).scalar_one()
    assert 0 < most <= asked
    assert used >= 1
