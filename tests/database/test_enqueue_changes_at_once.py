"""Changes of waiting jobs beside other transactions: who waits for whom, what is seen, and who is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
from changed_rows import HOUR, debounced, latest, row, rows, sync

from jobq.model import Enqueued
from jobq.producer import enqueue, enqueue_many
from jobq.store import newjobs
from jobq.tables import jobs

pytestmark = pytest.mark.duty("enqueue")


@pytest.fixture
def heard(engine: sa.Engine) -> Iterator[Callable[[], list[str]]]:
    """What is told in the database's channel: asked of a connection that listens."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as listening:
        listening.exec_driver_sql("LISTEN jobq")

        def told() -> list[str]:
            listening.exec_driver_sql("SELECT 1")
            driver: Any = listening.connection.driver_connection
            return [each.payload for each in driver.notifies(timeout=0)]

        yield told


@pytest.mark.parametrize("size", [5000, 7], ids=["one statement", "several"])
def test_f11_bulk_calls_that_replace_in_opposite_order_do_not_deadlock(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(newjobs, "MOST_ROWS", size)
    with engine.begin() as connection:
        enqueue_many(connection, sync, [{"company_id": n} for n in range(0, 60, 2)])

    def many(step: int) -> list[Enqueued]:
        with engine.begin() as connection:
            return enqueue_many(connection, latest, [{"company_id": n, "what": str(step)} for n in range(60)][::step])

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(many, [1, -1] * 8))

    assert sum(answer.created for each in answers for answer in each) == 30
    assert all(answer.created or answer.changed for each in answers for answer in each)


LOCK = sa.select(jobs.c.id).with_for_update()


def keyed(*keys: str) -> list[Any]:
    return [latest.options(unique=False, unique_key=key).args(1) for key in keys]


def test_f11_two_calls_that_wait_for_one_row_have_locked_nothing_that_the_other_needs(engine: sa.Engine) -> None:
    keys = [f"k{n:02}" for n in range(60)]
    with engine.begin() as connection:
        enqueue_many(connection, sync, keyed(*keys))

    with engine.connect() as other, ThreadPoolExecutor(2) as threads:
        other.execute(LOCK.where(jobs.c.unique_key == "k30"))
        both = [threads.submit(many_in_own_transaction, engine, keyed(*keys[::step])) for step in (1, -1)]
        wait_until_blocked(engine, 2)
        other.commit()
        assert all(answer.changed for each in both for answer in each.result(timeout=30))


def test_f11_what_is_new_goes_in_before_anything_is_changed_over_all_parts(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the first call, which has changed b in its first part, waits for the c of the second, and that for b."""
    monkeypatch.setattr(newjobs, "MOST_ROWS", 2)
    with engine.begin() as connection:
        enqueue_many(connection, sync, keyed("b"))

    with engine.connect() as other, ThreadPoolExecutor(2) as threads:
        other.execute(LOCK)
        first = threads.submit(many_in_own_transaction, engine, keyed("a", "b", "c"))
        wait_until_blocked(engine, 1)
        second = threads.submit(many_in_own_transaction, engine, keyed("b", "c"))
        wait_until_blocked(engine, 2)
        other.commit()
        answers = [first.result(timeout=30), second.result(timeout=30)]

    assert [[answer.created for answer in each] for each in answers] == [[True, False, True], [False, False]]


def test_the_second_of_two_transactions_waits_for_the_first_and_then_replaces(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        enqueue(connection, sync, 1, "old")
    with engine.connect() as first, ThreadPoolExecutor(1) as thread:
        enqueue(first, latest, 1, "first")
        second = thread.submit(in_own_transaction, engine, lambda own: enqueue(own, latest, 1, "second"))
        wait_until_blocked(engine)
        first.commit()
        assert second.result(timeout=30).changed

    with engine.connect() as connection:
        assert row(connection).args["what"] == "second"


@pytest.mark.parametrize(
    ("end", "answer"),
    [
        (sa.update(jobs).values(worker_id=7, attempt=1), (False, False)),
        (sa.delete(jobs), (True, False)),
        (sa.update(jobs).values(priority=3), (False, True)),
    ],
    ids=["claimed", "ended", "changed"],
)
def test_what_happens_to_the_holder_meanwhile_is_seen(
    engine: sa.Engine, end: sa.Executable, answer: tuple[bool, bool]
) -> None:
    """The holder is locked when a call wants to replace it: what it is when the lock is gone decides."""
    with engine.begin() as connection:
        enqueue(connection, sync, 1, "old")
    with engine.connect() as first, ThreadPoolExecutor(1) as thread:
        first.execute(LOCK)
        waiting = thread.submit(in_own_transaction, engine, lambda own: enqueue(own, latest, 1, "new"))
        wait_until_blocked(engine)
        first.execute(end)
        first.commit()
        given = waiting.result(timeout=30)

    assert (given.created, given.changed) == answer
    with engine.connect() as connection:
        assert row(connection).args["what"] == ("new" if any(answer) else "old")


def test_a_changed_job_is_passed_over_until_the_commit_and_then_told_of(
    engine: sa.Engine, heard: Callable[[], list[str]]
) -> None:
    with engine.begin() as connection:
        enqueue(connection, sync, 1)
    assert len(heard()) == 1
    claim = sa.select(jobs.c.id).with_for_update(skip_locked=True)
    with engine.connect() as own, engine.connect() as worker:
        enqueue(own, latest, 1, "new")
        assert worker.execute(claim).all() == []
        assert heard() == []
        own.commit()
        assert heard() == [f"sync|1|{row(own).run_at.timestamp():.6f}"]


def test_a_job_moved_into_the_future_tells_nobody_and_one_moved_to_now_does(
    engine: sa.Engine, heard: Callable[[], list[str]]
) -> None:
    for handler, times in [(debounced, 0), (debounced, 0), (sync.options(on_conflict="reschedule"), 1)]:
        with engine.begin() as connection:
            enqueue(connection, handler, 1)
        assert len(heard()) == times


def test_a_rollback_undoes_the_change(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        enqueue(connection, sync, 1, "old")
    with engine.connect() as connection:
        before = row(connection)
        enqueue(connection, latest.options(delay=HOUR), 1, "new")
        connection.rollback()
        assert row(connection) == before


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_f11_a_job_changed_since_the_snapshot_is_the_databases_error(engine: sa.Engine, level: str) -> None:
    in_own_transaction(engine, lambda own: enqueue(own, sync, 1))
    with engine.connect().execution_options(isolation_level=level) as connection:
        rows(connection)
        in_own_transaction(engine, lambda own: enqueue(own, latest, 1, "first"))

        with pytest.raises(sa.exc.OperationalError) as caught:
            enqueue(connection, latest, 1, "second")
        assert caught.value.orig.sqlstate == "40001"  # type: ignore[union-attr]


def in_own_transaction(engine: sa.Engine, work: Callable[[sa.Connection], Enqueued]) -> Enqueued:
    with engine.begin() as connection:
        return work(connection)


def many_in_own_transaction(engine: sa.Engine, rows: list[Any]) -> list[Enqueued]:
    with engine.begin() as connection:
        return enqueue_many(connection, sync, rows)


def wait_until_blocked(engine: sa.Engine, number: int = 1) -> None:
    """Until so many transactions of this database wait for another: asked of the server, each time a round trip."""
    waiting = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while connection.execute(waiting).scalar_one() < number:
            connection.execute(sa.text("SELECT pg_sleep(0.01)"))
