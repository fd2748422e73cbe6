"""Slots: taken with their job in one statement, and freed in the one that writes its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended, add_job, add_worker
from store_rows import KINDS, ME, MOMENT, OTHER, claim_from, in_thread, lane, row, stale

from jobq import admin
from jobq.model import State
from jobq.statements import lease as lease_statements
from jobq.statements import slots as statements
from jobq.store.claiming import Claim, claim_slots, survey
from jobq.store.ending import Ending, Fence, finish_limited, free_slot, pause_and_put_back, put_back, was_put_back
from jobq.store.leasing import leave, reconcile
from jobq.store.rescuing import rescue
from jobq.tables import jobs, queues, slots, workers

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
FIFO: dict[str, Any] = {"fifo": True}


@pytest.fixture(autouse=True)
def me(request: pytest.FixtureRequest) -> None:
    if "engine" not in request.fixturenames:
        prepare(request.getfixturevalue("connection"))


def prepare(connection: sa.Connection) -> None:
    for worker_id in (ME, OTHER):
        add_worker(connection, worker_id)


def set_queue(connection: sa.Connection, name: str = "q", **values: Any) -> None:
    connection.execute(sa.insert(queues).values(name=name, **values))
    connection.execute(statements.make_slots())


def take(
    connection: sa.Connection, *names: str, in_order: bool = True, worker_id: int = ME, most: int = 100, **others: Any
) -> Claim:
    options = {"kinds": KINDS, **others}
    return claim_slots(connection, names or ("q",), worker_id=worker_id, most=most, in_order=in_order, **options)


def ids_of(claim: Claim) -> list[int]:
    return [job.id for job in claim.jobs]


def holders(connection: sa.Connection, queue: str = "q") -> list[tuple[Any, ...]]:
    """Of each slot of a queue: number, worker, job, attempt."""
    found = sa.select(slots.c.n, slots.c.worker_id, slots.c.job_id, slots.c.attempt).where(slots.c.queue == queue)
    return [tuple(each) for each in connection.execute(found.order_by(slots.c.n))]


def waits(connection: sa.Connection) -> timedelta:
    """How long the one slot there is still waits."""
    return connection.execute(sa.select(slots.c.ready_at - NOW)).scalar_one()  # type: ignore[no-any-return]


FREE = (1, None, None, None)


def running(connection: sa.Connection, **queue: Any) -> Fence:
    """A job of a limited queue that runs here, with its slot."""
    set_queue(connection, **(queue or FIFO))
    add_job(connection, queue="q")
    (job,) = take(connection, in_order=not queue).jobs
    return Fence(job.id, job.attempt, job.worker_id)


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the driver is given: some statements go by SQLAlchemy's events."""
    sent: list[str] = []
    execute = psycopg.Cursor.execute

    def note(cursor: Any, query: str, *rest: Any, **options: Any) -> Any:
        sent.append(query)
        return execute(cursor, query, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", note)
        yield sent


# ---- taking


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


@contextmanager
def two(engine: sa.Engine) -> Iterator[tuple[sa.Connection, sa.Connection]]:
    """Two transactions side by side, on a FIFO queue of three jobs."""
    with engine.begin() as connection:
        prepare(connection)
        set_queue(connection, **FIFO)
        for _ in range(3):
            add_job(connection, queue="q")
    with engine.connect() as one, engine.connect() as other:
        yield one, other


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


# ---- freeing

ENDS: dict[str, Any] = {
    "done": lambda c, fence: finish_limited(c, Ending(fence, State.DONE, keep=HOUR, slot_wait=SECOND)),
    "back": lambda c, fence: put_back(c, Ending(fence, State.PENDING, error="{}", slot_wait=SECOND)),
    "paused": lambda c, fence: pause_and_put_back(
        c, Ending(fence, State.PENDING, slot_wait=SECOND, pause=HOUR), queue="q", channel="jobq"
    )[0],
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_an_end_frees_its_slot_in_the_same_statement(
    connection: sa.Connection, monkeypatch: pytest.MonkeyPatch, end: Any
) -> None:
    fence = running(connection)

    with counting(monkeypatch) as sent:
        assert end(connection, fence)

    assert len(sent) == 1
    assert holders(connection) == [FREE]
    assert waits(connection) == SECOND


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_f25_the_fence_guards_the_slot_too(connection: sa.Connection, end: Any) -> None:
    fence = running(connection)
    before = holders(connection)

    for wrong in (*stale(fence), replace(fence, id=fence.id + 1)):
        assert not end(connection, wrong)

    assert holders(connection) == before


def test_the_slot_of_a_job_that_was_cancelled_while_it_ran_is_its_workers_until_the_end(
    connection: sa.Connection,
) -> None:
    fence = running(connection)
    add_job(connection, queue="q")
    admin.cancel(connection, fence.id, running=True)

    assert take(connection, worker_id=OTHER).jobs == ()
    assert not finish_limited(connection, Ending(fence, State.DONE, keep=HOUR, slot_wait=timedelta(0)))
    assert holders(connection) == [FREE]


def test_a_slot_freed_by_itself_is_that_of_the_attempt_alone(connection: sa.Connection) -> None:
    fence = running(connection)

    assert not any(free_slot(connection, wrong, SECOND) for wrong in stale(fence))
    assert free_slot(connection, fence, SECOND)
    assert not free_slot(connection, fence, SECOND)


def test_a_job_put_back_without_a_delay_keeps_its_place(connection: sa.Connection) -> None:
    fence = running(connection)
    before = row(connection, fence.id)["run_at"]

    put_back(connection, Ending(fence, State.PENDING, error="{}", slot_wait=timedelta(0)))

    assert row(connection, fence.id)["run_at"] == before
    assert ids_of(take(connection)) == [fence.id]


def test_a_job_that_went_back_is_known_for_it_also_when_it_has_ended_since(connection: sa.Connection) -> None:
    fence = running(connection)
    back = Ending(fence, State.PENDING, error='{"attempt": 1}', slot_wait=timedelta(0))
    put_back(connection, back)
    assert was_put_back(connection, back)
    (again,) = take(connection, worker_id=OTHER).jobs
    assert was_put_back(connection, back)
    done = Ending(Fence(again.id, again.attempt, OTHER), State.DONE, keep=HOUR, slot_wait=timedelta(0))
    finish_limited(connection, done)

    assert was_put_back(connection, back)
    assert not was_put_back(connection, replace(back, fence=done.fence))


def test_a_pause_begins_once_and_a_longer_one_stays(connection: sa.Connection) -> None:
    def pause(length: timedelta) -> tuple[bool, bool]:
        ending = Ending(Fence(1, 1, ME), State.PENDING, pause=length, pause_reason=str(length))
        return pause_and_put_back(connection, ending, queue="new", channel="jobq")

    found = sa.select(queues.c.paused_until - NOW, queues.c.pause_reason, queues.c.weight, queues.c.fifo)
    assert pause(HOUR) == (False, True)
    connection.execute(sa.update(queues).values(paused_at=NOW - SECOND))
    assert pause(SECOND) == (False, False)
    assert connection.execute(found).one() == (HOUR, "1:00:00", None, None)
    assert pause(2 * HOUR) == (False, False)
    assert connection.execute(found).one() == (2 * HOUR, "2:00:00", None, None)
    connection.execute(sa.update(queues).values(paused_until=NOW - SECOND))
    assert pause(SECOND) == (False, True)


# ---- workers that come and go


def test_a_rescued_job_is_the_next_of_its_queue(connection: sa.Connection) -> None:
    fence = running(connection)
    add_job(connection, queue="q")
    connection.execute(sa.update(workers).where(workers.c.id == ME).values(lease=MOMENT, lease_until=NOW - HOUR))

    rescue(connection, connected_for=timedelta(days=9), look_everywhere=False, channel=None)

    assert holders(connection) == [FREE]
    assert ids_of(take(connection, worker_id=OTHER)) == [fence.id]


def test_slots_are_released_by_the_list_of_the_lost_and_never_by_a_second_look(connection: sa.Connection) -> None:
    """A worker that vanishes between the two statements keeps its slot as long as it keeps its job."""
    fence = running(connection)
    gone = list(connection.execute(lease_statements.gone_workers()).scalars())
    connection.execute(sa.delete(workers).where(workers.c.id == ME))

    connection.execute(lease_statements.take_back(), {"gone": gone, "names": []})
    connection.execute(statements.release_slots(), {"gone": gone})

    assert holders(connection) == [(1, ME, fence.id, 1)]


def test_the_slot_of_a_job_that_was_left_locked_stays_with_it(engine: sa.Engine) -> None:
    with two(engine) as (one, other):
        take(one)
        one.execute(sa.delete(workers).where(workers.c.id == ME))
        one.commit()
        one.execute(sa.select(jobs.c.id).where(jobs.c.id == 1).with_for_update())

        rescue(other, connected_for=timedelta(days=9), look_everywhere=True, channel=None)
        other.commit()
        assert holders(other) == [(1, ME, 1, 1)]
        one.rollback()
        rescue(other, connected_for=timedelta(days=9), look_everywhere=True, channel=None)
        assert holders(other) == [FREE]


def test_a_leaving_worker_frees_its_slots_and_leaves_those_waiting_whose_handler_still_runs(
    connection: sa.Connection,
) -> None:
    set_queue(connection, fifo=False, concurrency=2)
    ids = [add_job(connection, queue="q") for _ in range(2)]
    taken = take(connection, in_order=False).jobs
    kept = taken[0]

    leave(
        connection,
        worker_id=ME,
        held=[Fence(job.id, 1, ME) for job in taken],
        channel=None,
        kept_slots=[kept.id],
        wait=HOUR,
    )

    assert [holder[1] for holder in holders(connection)] == [None, None]
    ready = connection.execute(sa.select(slots.c.n).where(slots.c.ready_at == NOW + HOUR)).scalars().all()
    assert ready == [kept.slot]
    assert ids_of(take(connection, in_order=False, worker_id=OTHER)) == ids[:1]


def test_a_reconcile_frees_the_slots_of_what_it_gives_back_and_no_others(connection: sa.Connection) -> None:
    set_queue(connection, fifo=False, concurrency=3)
    ids = [add_job(connection, queue="q") for _ in range(3)]
    take(connection, in_order=False)

    reconcile(connection, worker_id=ME, held=[Fence(ids[0], 1, ME)], kept_slots=[ids[1]], channel=None)

    assert [holder[2] for holder in holders(connection)] == [ids[0], ids[1], None]


# ---- making slots


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
