"""What was written and got no answer: read back by the fence."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa
from admin_rows import add_worker
from store_rows import ME, OTHER, add_running, claim_from, in_thread, stale

from jobq import admin
from jobq.model import State
from jobq.store.ending import Ending, Fence, finish
from jobq.store.putting_back import give_back, put_back
from jobq.store.recorded import recorded, settle, was_put_back

SECOND = timedelta(seconds=1)


def failed(fence: Fence) -> Ending:
    error = json.dumps({"attempt": fence.attempt, "error": "ValueError", "message": "no"})
    return Ending(fence, State.PENDING, "err", error, SECOND)


def test_a_job_that_this_attempt_has_ended_as_done_is_settled(connection: sa.Connection) -> None:
    done, dead, running = (add_running(connection) for _ in range(3))
    finish(connection, [Ending(done, State.DONE), Ending(dead, State.DEAD)])

    assert settle(connection, done) is True
    assert settle(connection, dead) is False
    assert settle(connection, running) is False
    assert all(settle(connection, wrong) is False for wrong in stale(done))


@pytest.mark.parametrize("commits", [True, False], ids=["commit", "rollback"])
def test_settling_waits_for_a_commit_in_flight(engine: sa.Engine, commits: bool) -> None:
    with engine.begin() as connection:
        fence = add_running(connection)

    with engine.connect() as handler:
        finish(handler, [Ending(fence, State.DONE)])
        with in_thread(engine, lambda connection: settle(connection, fence)) as settled:
            assert not settled.done()
            handler.commit() if commits else handler.rollback()
            assert settled.result(timeout=30) is commits


def test_ends_that_were_written_are_found_by_their_fence(connection: sa.Connection) -> None:
    done, dead, running = (add_running(connection, attempt=n) for n in (7, 1, 3))
    others = add_running(connection, OTHER)
    finish(connection, [Ending(done, State.DONE), Ending(dead, State.DEAD)])
    finish(connection, [Ending(others, State.DONE)])

    asked = [running, replace(others, worker_id=ME), dead, done]

    assert recorded(connection, asked) == {done.id, dead.id}
    assert recorded(connection, [replace(done, attempt=6)]) == set()


def snoozed(fence: Fence) -> Ending:
    return Ending(fence, State.PENDING, delay=SECOND)


@pytest.mark.parametrize("end", [failed, snoozed])
def test_a_job_that_was_put_back_is_found_also_when_it_has_gone_on(
    connection: sa.Connection, end: Callable[[Fence], Ending]
) -> None:
    add_worker(connection, ME)
    fence = add_running(connection)
    ending = end(fence)
    assert not was_put_back(connection, ending)

    assert put_back(connection, Ending(fence, State.PENDING, ending.outcome, ending.error))

    assert was_put_back(connection, ending)
    assert [job.attempt for job in claim_from(connection).jobs] == [2]
    assert was_put_back(connection, ending)


def test_a_job_that_went_back_in_another_way_was_not_put_back_with_its_failure(connection: sa.Connection) -> None:
    given, cancelled, running = (add_running(connection) for _ in range(3))
    give_back(connection, [given], channel=None)
    admin.cancel(connection, cancelled.id, running=True)

    assert not any(was_put_back(connection, failed(fence)) for fence in (given, cancelled, running))
