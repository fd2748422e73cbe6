"""The rescue while others are at work: what is locked is stepped over, and nobody waits."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_job, add_worker
from store_rows import (
    LOST,
    ME,
    MOMENT,
    OTHER,
    add_lost_worker,
    add_running,
    add_slot,
    claim_from,
    rescued,
    rescued_ids,
    row,
    running_on,
    slot_holders,
    workers_left,
)

from jobq.model import State
from jobq.store.ending import Ending, finish
from jobq.store.leasing import beat
from jobq.store.rescuing import Rescue, lost_workers
from jobq.tables import jobs, workers

HOUR = timedelta(hours=1)


def test_locked_jobs_are_stepped_over_and_taken_in_the_next_pass(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_lost_worker(connection)
        locked, free = add_running(connection, LOST, queue="a"), add_running(connection, LOST)
        add_slot(connection, "a", LOST)

    with engine.connect() as operator:
        operator.execute(sa.select(jobs.c.id).where(jobs.c.id == locked.id).with_for_update())
        with engine.begin() as connection:
            found = rescued(connection)
            assert rescued_ids(found) == {free.id}
            assert not found.is_complete
            assert slot_holders(connection) == {"a": LOST}  # its job still has the right to run alone
        with engine.begin() as connection:
            again = rescued(connection, everywhere=True)
            assert rescued_ids(again) == set()
            assert not again.is_complete

    with engine.begin() as connection:
        last = rescued(connection, everywhere=True)
        assert rescued_ids(last) == {locked.id}
        assert last.is_complete
        assert slot_holders(connection) == {"a": None}


def test_a2_a_worker_frozen_in_its_own_transaction_blocks_the_rescue_of_nobody_else(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        for worker_id in (ME, LOST):
            add_lost_worker(connection, worker_id)
        frozen = add_running(connection, ME)
        others = {add_running(connection, LOST).id for _ in range(10)}

    with engine.connect() as handler:
        assert finish(handler, [Ending(frozen, State.DONE, "ok")]) == {frozen.id}
        with engine.begin() as connection:
            found = rescued(connection)
        assert rescued_ids(found) == others
        assert not found.is_complete
        handler.commit()

    with engine.begin() as connection:
        assert rescued(connection, everywhere=True) == Rescue()
        assert row(connection, frozen.id)["state"] == "done"


def test_a2_a_worker_frozen_in_a_claim_blocks_the_rescue_of_nobody_else(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        for worker_id in (ME, LOST):
            add_lost_worker(connection, worker_id)
        waiting = add_job(connection)
        held = add_running(connection, LOST)

    with engine.connect() as claimer:
        assert [job.id for job in claim_from(claimer).jobs] == [waiting]
        with engine.begin() as connection:
            assert rescued_ids(rescued(connection)) == {held.id}
            assert workers_left(connection) == {ME}
        claimer.commit()

    with engine.begin() as connection:
        assert rescued_ids(rescued(connection)) == {waiting}
        assert workers_left(connection) == set()


def test_a_worker_that_beats_at_the_last_moment_is_not_lost(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_worker(connection, ME, lease=MOMENT, lease_until=NOW - HOUR)
        held = add_running(connection, ME)

    with engine.connect() as heart:
        assert beat(heart, ME)
        with engine.begin() as connection:
            assert rescued(connection) == Rescue()
        heart.commit()

    with engine.connect() as connection:
        assert running_on(connection, ME) == [held.id]


@pytest.mark.parametrize("commits", [True, False], ids=["commit", "rollback"])
def test_a_job_that_a_live_worker_is_just_claiming_is_never_taken_from_it(engine: sa.Engine, commits: bool) -> None:
    with engine.begin() as connection:
        add_worker(connection, ME)
        add_lost_worker(connection)
        held = add_running(connection, LOST)

    with engine.connect() as claimer:  # the job was given back, and this worker is about to have it
        claimer.execute(sa.update(jobs).where(jobs.c.id == held.id).values(worker_id=ME, attempt=2))
        with engine.begin() as connection:
            found = rescued(connection)
            assert rescued_ids(found) == set()
            assert not found.is_complete
        claimer.commit() if commits else claimer.rollback()

    with engine.begin() as connection:
        again = rescued(connection, everywhere=True)
        assert rescued_ids(again) == (set() if commits else {held.id})
        assert again.is_complete
        assert running_on(connection, ME) == ([held.id] if commits else [])


def test_a_glance_sees_a_lost_worker_whose_row_is_locked_and_waits_for_nobody(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_lost_worker(connection)
        add_worker(connection, OTHER)

    with engine.connect() as claimer, engine.connect() as rescuer:
        claimer.execute(sa.select(workers.c.id).with_for_update())
        assert lost_workers(rescuer, connected_for=HOUR).lost == 1


def test_of_two_rescuers_at_once_one_works_and_the_other_does_not_wait(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_lost_worker(connection)
        held = add_running(connection, LOST)

    with engine.begin() as first, engine.begin() as second:
        assert rescued_ids(rescued(first)) == {held.id}
        assert rescued(second) == Rescue()
        assert rescued(second, everywhere=True) == Rescue(is_complete=False)

    with engine.begin() as connection:
        assert rescued(connection, everywhere=True) == Rescue()


def test_a_pass_that_fails_leaves_everything_for_the_next(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_lost_worker(connection)
        held = add_running(connection, LOST)

    with engine.connect() as connection:
        assert rescued_ids(rescued(connection)) == {held.id}
        connection.rollback()

    with engine.begin() as connection:
        assert workers_left(connection) == {LOST}
        assert rescued_ids(rescued(connection)) == {held.id}


def test_a_rescue_leaves_the_settings_of_its_connection_as_they_were(engine: sa.Engine) -> None:
    names = ("lock_timeout", "enable_seqscan")

    with engine.connect() as connection:
        connection.execute(sa.select(sa.func.set_config("enable_seqscan", "off", False)))
        connection.commit()
        rescued(connection, everywhere=True)
        connection.commit()
        settings = [connection.scalar(sa.select(sa.func.current_setting(name))) for name in names]
        connection.invalidate()

    assert settings == ["0", "off"]
