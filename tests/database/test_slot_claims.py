"""Slots are taken with their job, in one statement."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended, add_job
from limited_rows import FIFO, HOUR, SECOND, counting, holders, ids_of, set_queue, take, two
from store_rows import ME, MOMENT, OTHER, claim_from, in_thread, lane, row

from jobq.model import State
from jobq.store.claiming import survey
from jobq.store.ending import Ending, Fence, finish_limited
from jobq.tables import jobs, queues, slots, workers

pytestmark = pytest.mark.usefixtures("both_workers")


def test_the_head_is_claimed_with_the_slot_that_carries_its_fence(connection: sa.Connection) -> None:
    set_queue(connection, **FIFO)
    first, _ = (add_job(connection, queue="q", attempt=3) for _ in range(2))

    claim = take(connection)

    (job,) = claim.jobs
    assert (job.id, job.attempt, job.slot, job.in_order) == (first, 4, 1, True)
    assert row(connection, first)["worker_id"] == ME
    assert holders(connection) == [(1, ME, first, 4)]
    assert take(connection).jobs == ()


def test_the_order_is_that_of_priority_time_and_id(connection: sa.Connection) -> None:
    set_queue(connection, **FIFO)
    later = add_job(connection, queue="q", run_at=NOW - SECOND)
    same = [add_job(connection, queue="q", run_at=NOW - HOUR) for _ in range(2)]
    low = add_job(connection, queue="q", priority=3, run_at=NOW - 9 * HOUR)
    urgent = add_job(connection, queue="q", priority=0)
    add_job(connection, queue="q", priority=0, run_at=NOW + SECOND)
    seen = []

    while claim := take(connection).jobs:
        seen.append(claim[0].id)
        ending = Ending(Fence(claim[0].id, 1, ME), State.DONE, keep=HOUR, slot_wait=timedelta(0))
        assert finish_limited(connection, ending)

    assert seen == [urgent, *same, later, low]


NOT_NOW: dict[str, tuple[sa.Table, dict[str, Any]]] = {
    "paused": (queues, {"paused_until": NOW + HOUR}),
    "no limit any more": (queues, {"fifo": False, "concurrency": None}),
    "not ready": (slots, {"ready_at": NOW + SECOND}),
    "taken": (slots, {"worker_id": OTHER, "job_id": 1}),
    "scheduled": (jobs, {"run_at": NOW + SECOND}),
    "of another kind": (jobs, {"kind": "image.scale"}),
    "out of attempts": (jobs, {"failures": 5, "max_attempts": 5}),
    "running without a slot": (jobs, {"worker_id": OTHER}),
    "of another queue": (jobs, {"queue": "other"}),
}


@pytest.mark.parametrize(("table", "values"), NOT_NOW.values(), ids=NOT_NOW)
@pytest.mark.parametrize("in_order", [True, False], ids=["fifo", "concurrency"])
def test_what_cannot_be_had_now_is_left_as_it_is(
    connection: sa.Connection, table: sa.Table, values: dict[str, Any], in_order: bool
) -> None:
    set_queue(connection, **(FIFO if in_order else {"fifo": False, "concurrency": 1}))
    id_ = add_job(connection, queue="q")
    connection.execute(sa.update(table).values(**values))
    before = row(connection, id_), holders(connection)

    assert take(connection, in_order=in_order).jobs == ()
    assert take(connection, in_order=not in_order).jobs == ()
    assert (row(connection, id_), holders(connection)) == before


def test_nothing_passes_the_head_of_an_unknown_kind_or_one_that_runs_already(connection: sa.Connection) -> None:
    for name, about in {"a": {"kind": "rare"}, "b": {"worker_id": OTHER}}.items():
        set_queue(connection, name, **FIFO)
        add_job(connection, queue=name, **about)
        add_job(connection, queue=name)

    assert take(connection, "a", "b").jobs == ()
    assert ids_of(take(connection, "a", "b", kinds=["rare"])) != []


def test_a_job_out_of_attempts_is_no_head(connection: sa.Connection) -> None:
    set_queue(connection, **FIFO)
    add_job(connection, queue="q", failures=5, max_attempts=5)
    second = add_job(connection, queue="q")

    assert ids_of(take(connection)) == [second]


def test_a_worker_without_a_row_takes_neither_job_nor_slot(connection: sa.Connection) -> None:
    set_queue(connection, **FIFO)
    set_queue(connection, "many", fifo=False, concurrency=3)
    for queue in ("q", "many"):
        add_job(connection, queue=queue)
    connection.execute(sa.delete(workers))

    assert [take(connection, "q", "many", in_order=in_order).jobs for in_order in (True, False)] == [(), ()]
    assert {holder[1] for queue in ("q", "many") for holder in holders(connection, queue)} == {None}


def test_forty_queues_are_claimed_from_in_one_statement_in_the_order_of_their_turn(
    connection: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"q{n:02}" for n in range(40)]
    ids = {}
    for name in names:
        set_queue(connection, name, **FIFO)
        ids[name], _ = (add_job(connection, queue=name) for _ in range(2))
    turn = names[20:] + names[:20]

    with counting(monkeypatch) as sent:
        claim = take(connection, *turn, most=30)

    assert len(sent) == 1
    assert ids_of(claim) == [ids[name] for name in turn[:30]]


def test_of_a_limit_as_many_are_taken_as_slots_are_free(connection: sa.Connection) -> None:
    set_queue(connection, fifo=False, concurrency=3)
    ids = [add_job(connection, queue="q") for _ in range(5)]
    urgent = add_job(connection, queue="q", priority=0)

    claim = take(connection, in_order=False)

    assert ids_of(claim) == [urgent, *ids[:2]]
    assert sorted(job.slot or 0 for job in claim.jobs) == [1, 2, 3]
    assert sorted(holder[2] for holder in holders(connection)) == sorted([urgent, *ids[:2]])
    assert take(connection, in_order=False).jobs == ()


def test_a_lower_limit_waits_for_the_slots_beyond_it(connection: sa.Connection) -> None:
    set_queue(connection, fifo=False, concurrency=4)
    for _ in range(9):
        add_job(connection, queue="q")
    taken = {job.slot: job for job in take(connection, in_order=False).jobs}
    connection.execute(sa.update(queues).values(concurrency=2))

    def end(n: int) -> None:
        fence = Fence(taken[n].id, 1, ME)
        assert finish_limited(connection, Ending(fence, State.DONE, keep=HOUR, slot_wait=timedelta(0)))

    end(1)
    assert take(connection, in_order=False).jobs == ()
    end(3)
    end(4)
    assert [job.slot for job in take(connection, in_order=False).jobs] == [1]
    assert survey(connection).settings[0].concurrency == 2
    assert len(holders(connection)) == 4


def test_a_claim_tells_when_the_next_slot_or_queue_is_ready(connection: sa.Connection) -> None:
    for name in ("a", "b", "c"):
        set_queue(connection, name, **FIFO)
    assert take(connection, "a", "b").next_at is None

    connection.execute(sa.update(slots).where(slots.c.queue == "a").values(ready_at=NOW + HOUR))
    connection.execute(sa.update(queues).where(queues.c.name == "b").values(paused_until=NOW + SECOND))
    connection.execute(sa.update(slots).where(slots.c.queue == "c").values(ready_at=NOW + MOMENT))

    assert [(found := take(connection, *names)).next_at - found.now for names in (["a"], ["a", "b"])] == [HOUR, SECOND]  # type: ignore[operator]


def test_a_claim_by_lanes_leaves_limited_queues_alone(connection: sa.Connection) -> None:
    for name, limit in {"fifo": FIFO, "some": {"fifo": False, "concurrency": 9}, "any": {"fifo": False}}.items():
        set_queue(connection, name, **limit)
    ids = {name: add_job(connection, queue=name) for name in ("fifo", "some", "any", "unsaid")}

    claim = claim_from(connection, *map(lane, ids))

    assert {job.id for job in claim.jobs} == {ids["any"], ids["unsaid"]}


def test_of_two_claims_at_once_one_gets_the_head_and_the_other_nothing(engine: sa.Engine) -> None:
    with two(engine) as (one, other):
        assert ids_of(take(one)) == [1]
        assert take(other, worker_id=OTHER).jobs == ()
        one.commit()
        assert take(other, worker_id=OTHER).jobs == ()


def test_while_an_end_is_not_committed_the_next_job_waits_for_it(engine: sa.Engine) -> None:
    with two(engine) as (one, other):
        take(one)
        one.commit()
        assert finish_limited(one, Ending(Fence(1, 1, ME), State.DONE, keep=HOUR, slot_wait=timedelta(0)))
        assert take(other, worker_id=OTHER).jobs == ()
        other.commit()
        one.commit()
        assert ids_of(take(other, worker_id=OTHER)) == [2]


@pytest.mark.parametrize("in_order", [True, False], ids=["fifo", "concurrency"])
def test_a_locked_job_is_the_end_of_a_fifo_queue_and_no_matter_to_another(engine: sa.Engine, in_order: bool) -> None:
    with two(engine) as (one, other):
        if not in_order:
            one.execute(sa.update(queues).values(fifo=False, concurrency=1))
            one.commit()
        one.execute(sa.select(jobs.c.id).where(jobs.c.id == 1).with_for_update())
        assert ids_of(take(other, in_order=in_order)) == ([] if in_order else [2])


@pytest.mark.parametrize("in_order", [True, False], ids=["fifo", "concurrency"])
def test_a_job_that_was_put_off_while_the_claim_waited_is_not_taken(engine: sa.Engine, in_order: bool) -> None:
    with two(engine) as (one, other):
        if not in_order:
            one.execute(sa.update(queues).values(fifo=False, concurrency=1))
            one.commit()
        one.execute(sa.select(workers.c.id).where(workers.c.id == ME).with_for_update())
        with in_thread(engine, lambda connection: take(connection, in_order=in_order)) as claim:
            other.execute(sa.update(jobs).where(jobs.c.id == 1).values(run_at=NOW + HOUR))
            other.commit()
            one.commit()
            assert 1 not in ids_of(claim.result(timeout=30))


def test_slots_are_made_for_what_limits_ask_and_none_goes(connection: sa.Connection) -> None:
    add_ended(connection, "done", queue="q")
    for name, limit in {"fifo": FIFO, "some": {"fifo": False, "concurrency": 2}, "any": {"fifo": False}}.items():
        set_queue(connection, name, **limit)

    assert [len(holders(connection, name)) for name in ("fifo", "some", "any")] == [1, 2, 0]
    connection.execute(sa.update(queues).values(fifo=False, concurrency=3))
    survey(connection)
    assert [len(holders(connection, name)) for name in ("fifo", "some", "any")] == [3, 3, 3]
    connection.execute(sa.update(queues).values(fifo=True, concurrency=None))
    survey(connection)
    assert [len(holders(connection, name)) for name in ("fifo", "some", "any")] == [3, 3, 3]
