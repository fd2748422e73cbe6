"""Slots are freed in the statement that writes their job's end, or by what takes the place of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_job
from limited_rows import FREE, HOUR, SECOND, counting, holders, ids_of, running, set_queue, take, two, waits
from store_rows import ME, MOMENT, OTHER, row, stale

from jobq import admin
from jobq.model import State
from jobq.statements import lease as lease_statements
from jobq.statements import slots as statements
from jobq.store.ending import Ending, Fence, finish_limited, free_slot
from jobq.store.leasing import leave, reconcile
from jobq.store.putting_back import pause_and_put_back, put_back
from jobq.store.recorded import was_put_back
from jobq.store.rescuing import rescue
from jobq.tables import jobs, queues, slots, workers

pytestmark = pytest.mark.usefixtures("both_workers")


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
