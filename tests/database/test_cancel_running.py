"""Cancelling what runs: who is told, and who wins against a completion."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import psycopg
import pytest
import sqlalchemy as sa
from admin_rows import add_job
from store_rows import ME, OTHER, add_running, listening

from jobq import admin
from jobq.model import State
from jobq.store.ending import Ending, finish
from jobq.store.leasing import taken_from
from jobq.tables import jobs


def test_a_bulk_cancel_tells_each_worker_once(engine: sa.Engine) -> None:
    many = sa.text("INSERT INTO jobq.jobs (kind, worker_id, attempt) SELECT 'k', :w, 1 FROM generate_series(1, 1500)")
    with engine.begin() as connection:
        connection.execute(many, [{"w": ME}, {"w": OTHER}])
        add_job(connection)

    with listening(engine) as told:
        with engine.begin() as connection:
            assert len(admin.cancel(connection, jobs.c.id > 0, running=True).ids) == 3001
        assert told() == sorted([f"taken|{ME}", f"taken|{OTHER}"])


def test_nobody_is_told_of_a_job_that_waited(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        id_ = add_job(connection)

    with listening(engine) as told:
        with engine.begin() as connection:
            admin.cancel(connection, id_, running=True)
        assert told() == []


def test_a_rolled_back_cancel_tells_nobody(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        fence = add_running(connection)

    with listening(engine) as told:
        with engine.connect() as connection:
            admin.cancel(connection, fence.id, running=True)
            connection.rollback()
        assert told() == []


def test_notifications_can_be_switched_off(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBQ_NOTIFY", "0")
    with engine.begin() as connection:
        fence = add_running(connection)

    with listening(engine) as told:
        with engine.begin() as connection:
            admin.cancel(connection, fence.id, running=True)
        assert told() == []


@pytest.mark.parametrize("repair", ["cancel", "retry"])
def test_a_two_phase_transaction_can_be_prepared_after_a_repair(engine: sa.Engine, repair: str) -> None:
    """PostgreSQL cannot prepare a transaction that has notified."""
    with engine.begin() as connection:
        fence = add_running(connection)
        if repair == "retry":
            admin.cancel(connection, fence.id, running=True)

    with engine.connect() as connection:
        transaction = connection.begin_twophase()
        admin.cancel(connection, fence.id, running=True) if repair == "cancel" else admin.retry(connection, fence.id)
        transaction.prepare()
        transaction.commit()

    with engine.begin() as connection:
        job = admin.get(connection, fence.id)
    assert job is not None
    assert job.state is (State.CANCELLED if repair == "cancel" else State.PENDING)


def test_what_was_cancelled_is_told_from_what_was_lost(connection: sa.Connection) -> None:
    cancelled, lost, mine = (add_running(connection) for _ in range(3))
    admin.cancel(connection, cancelled.id, running=True)
    connection.execute(sa.update(jobs).where(jobs.c.id == lost.id).values(worker_id=OTHER))

    assert taken_from(connection, [cancelled, lost, mine]) == {cancelled: True, lost: False}
    assert taken_from(connection, [mine]) == {}


def test_f28_in_a_race_with_a_completion_exactly_one_wins_and_the_loser_is_told(engine: sa.Engine) -> None:
    rounds = 200
    with engine.begin() as connection:
        fences = [add_running(connection) for _ in range(rounds)]
    start = Barrier(2, timeout=30)

    def complete_all() -> set[int]:
        done: set[int] = set()
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for fence in fences:
                start.wait()
                done |= finish(connection, [Ending(fence, State.DONE, "ok: sent")])
        return done

    def cancel_all() -> tuple[set[int], dict[int, str]]:
        cancelled, refused = set[int](), dict[int, str]()
        with engine.connect() as connection:
            for fence in fences:
                start.wait()
                repaired = admin.cancel_ids(connection, [fence.id], running=True)
                connection.commit()
                cancelled |= set(repaired.ids)
                refused |= {each.id: str(each.error) for each in repaired.refused}
        return cancelled, refused

    with ThreadPoolExecutor(2) as threads:
        ends, cancels = threads.submit(complete_all), threads.submit(cancel_all)
        done, (cancelled, refused) = ends.result(), cancels.result()

    assert sorted([*done, *cancelled]) == [fence.id for fence in fences]
    assert set(refused) == done
    assert all("has ended already" in text and "done, ok: sent" in text for text in refused.values())
    with engine.begin() as connection:
        states = {job.id: job.state for job in admin.jobs(connection, limit=None)}
    assert states == {**dict.fromkeys(done, State.DONE), **dict.fromkeys(cancelled, State.CANCELLED)}


def test_a_payload_is_short_whatever_the_worker_is(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        fence = add_running(connection, 2**63 - 1)

    with psycopg.connect(engine.url.set(drivername="postgresql").render_as_string(False), autocommit=True) as heard:
        heard.execute("LISTEN jobq")
        with engine.begin() as connection:
            admin.cancel(connection, fence.id, running=True)
        payloads = [each.payload for each in heard.notifies(timeout=30, stop_after=1)]

    assert payloads == [f"taken|{2**63 - 1}"]
