"""What an enqueue does with the waiting job that holds its key: replace it, or give it another time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from changed_rows import HOUR, LATER, MINUTE, SECOND, ago, change, debounced, latest, row, rows, sync
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobq.errors import OptionError, UniqueKeyError
from jobq.handlers import Kind, kind
from jobq.model import Enqueued
from jobq.producer import enqueue, enqueue_many
from jobq.selection import enqueue_select
from jobq.statements.change import replace, reschedule
from jobq.store import newjobs

pytestmark = pytest.mark.duty("enqueue")


def test_a_free_key_is_taken_whatever_a_conflict_would_do(connection: sa.Connection) -> None:
    assert enqueue(connection, latest, 1) == Enqueued(row(connection).id, created=True)
    assert enqueue(connection, debounced, 2).created


def test_a_waiting_job_becomes_what_the_call_says(connection: sa.Connection) -> None:
    first = enqueue(connection, sync.options(timeout=SECOND), 1, "orders")
    before = row(connection)
    other = latest.options(queue="fast", priority=0, max_attempts=9, keep=HOUR)

    assert enqueue(connection, other, 1, "invoices") == Enqueued(first.id, created=False, changed=True)

    after = row(connection)
    assert after.args == {"company_id": 1, "what": "invoices"}
    assert (after.queue, after.priority, after.max_attempts, after.meta) == ("fast", 0, 9, {"keep": 3600.0})
    kept = ("id", "kind", "unique_key", "run_at", "created_at", "attempt", "failures", "worker_id", "errors")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    assert after.callsite != before.callsite


def test_a_replaced_job_keeps_its_time_unless_one_is_given(connection: sa.Connection) -> None:
    enqueue(connection, sync.options(run_at=LATER), 1)
    enqueue(connection, latest, 1, "orders")
    assert row(connection).run_at == LATER

    enqueue(connection, latest.options(delay=HOUR), 1)
    assert row(connection).run_at == row(connection).created_at + HOUR
    enqueue(connection, latest.options(run_at=datetime(2001, 1, 1, tzinfo=UTC)), 1)
    assert row(connection).run_at == row(connection).created_at  # of one transaction: now


def test_a_due_job_that_changes_its_lane_is_due_now_and_not_behind_the_cursors(connection: sa.Connection) -> None:
    enqueue(connection, sync, 1)
    change(connection, run_at=ago(HOUR))

    enqueue(connection, latest.options(queue="fast"), 1)
    assert row(connection).run_at == row(connection).created_at


def test_a_replaced_job_has_an_attempt_left_and_its_failures(connection: sa.Connection) -> None:
    enqueue(connection, sync.options(max_attempts=9), 1)
    change(connection, failures=5, attempt=6)

    enqueue(connection, latest, 1, "orders")
    assert (row(connection).failures, row(connection).max_attempts) == (5, 6)


def test_a_job_whose_handler_says_how_often_is_replaced_by_one_of_that_sort(connection: sa.Connection) -> None:
    bare = kind("sync", queue="q").options(unique_key="k", on_conflict="replace")
    enqueue(connection, bare.options(max_attempts=4), n=1)

    assert enqueue(connection, bare, n=2).changed
    assert (row(connection).max_attempts, row(connection).args) == (None, {"n": 2})


@pytest.mark.parametrize("handler", [latest, debounced], ids=["replace", "reschedule"])
def test_a_running_job_is_never_changed(connection: sa.Connection, handler: Kind[...]) -> None:
    first = enqueue(connection, sync, 1)
    change(connection, worker_id=7, attempt=1)
    before = row(connection)

    assert enqueue(connection, handler, 1, "orders") == Enqueued(first.id, created=False, changed=False)
    assert enqueue_many(connection, handler, [{"company_id": 1}]) == [Enqueued(first.id, created=False)]
    assert row(connection) == before


@pytest.mark.parametrize("on_conflict", ["replace", "reschedule"])
@pytest.mark.parametrize("worker", [None, 7], ids=["waiting", "running"])
def test_a_job_of_another_kind_is_refused_and_the_transaction_goes_on(
    connection: sa.Connection, on_conflict: Any, worker: int | None
) -> None:
    first = enqueue(connection, kind("other", queue="q").options(unique_key="k"), secret=1)
    change(connection, worker_id=worker)
    before = row(connection)
    mine = sync.options(unique=False, unique_key="k", on_conflict=on_conflict)

    with pytest.raises(UniqueKeyError, match=f"'k' is held by job {first.id} of kind other, sync cannot") as caught:
        enqueue(connection, mine, 1)
    with pytest.raises(UniqueKeyError, match="of kind other"):
        enqueue_many(connection, sync.options(unique=False), [sync.options(unique=False).args(2), mine.args(1)])

    assert (caught.value.key, caught.value.holder) == ("k", first.id)
    assert row(connection) == before  # the row beside it is not there either


def test_a_rescheduled_job_gets_the_time_alone(connection: sa.Connection) -> None:
    first = enqueue(connection, debounced, 1, "orders")
    before = row(connection)

    again = enqueue(connection, debounced.options(delay=HOUR, queue="fast", priority=0), 1, "invoices")

    assert again == Enqueued(first.id, created=False, changed=True)
    after = row(connection)
    assert after.run_at == before.created_at + HOUR
    assert after._mapping == {**before._mapping, "run_at": after.run_at}


def test_a_job_is_rescheduled_to_an_earlier_time_too_and_never_before_now(connection: sa.Connection) -> None:
    enqueue(connection, sync.options(run_at=LATER), 1)

    enqueue(connection, debounced.options(delay=SECOND), 1)
    assert row(connection).run_at == row(connection).created_at + SECOND
    enqueue(connection, sync.options(on_conflict="reschedule", run_at=datetime(2001, 1, 1, tzinfo=UTC)), 1)
    assert row(connection).run_at == row(connection).created_at
    enqueue(connection, debounced, 1)
    enqueue(connection, sync.options(on_conflict="reschedule"), 1)
    assert row(connection).run_at == row(connection).created_at


def test_max_wait_bounds_the_first_time_too(connection: sa.Connection) -> None:
    bounded = sync.options(on_conflict="reschedule", run_at=LATER, max_wait=HOUR)

    enqueue(connection, bounded, 1)
    enqueue_many(connection, bounded, [{"company_id": 2}])
    assert [each.run_at - each.created_at for each in rows(connection)] == [HOUR, HOUR]


def test_a_debounced_job_waits_no_longer_than_max_wait(connection: sa.Connection) -> None:
    bounded = debounced.options(max_wait=10 * MINUTE)
    enqueue(connection, bounded, 1)
    change(connection, created_at=ago(9.5 * MINUTE))

    assert enqueue(connection, bounded, 1).changed
    assert row(connection).run_at == row(connection).created_at + 10 * MINUTE


def test_a_debounced_job_that_is_due_since_max_wait_is_not_moved(connection: sa.Connection) -> None:
    enqueue(connection, debounced, 1)
    change(connection, created_at=ago(HOUR), run_at=ago(30 * MINUTE))
    before = row(connection)

    assert enqueue(connection, debounced.options(max_wait=MINUTE), 1).changed
    assert row(connection) == before


def test_debouncing_does_not_skip_the_backoff_of_a_job_that_failed(connection: sa.Connection) -> None:
    enqueue(connection, debounced, 1)
    change(connection, attempt=1, failures=1, run_at=sa.func.now() + sa.cast(HOUR, sa.Interval))
    before = row(connection)

    enqueue(connection, debounced, 1)
    enqueue(connection, debounced.options(max_wait=MINUTE), 1)
    assert row(connection) == before


SPANS = st.integers(-7200, 7200).map(lambda seconds: timedelta(seconds=seconds))
POSITIVE = st.integers(1, 7200).map(lambda seconds: timedelta(seconds=seconds))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(age=POSITIVE, due=SPANS, delay=POSITIVE, wait=st.none() | POSITIVE, attempt=st.sampled_from([0, 3]))
def test_the_law_of_a_rescheduled_time(
    connection: sa.Connection, age: timedelta, due: timedelta, delay: timedelta, wait: timedelta | None, attempt: int
) -> None:
    """Not before now unless it was, not after the limit unless it was due or retried, else as asked."""
    with connection.begin_nested() as savepoint:
        enqueue(connection, sync, 1)
        change(connection, created_at=ago(age), run_at=ago(-due), attempt=attempt)
        before = row(connection)
        now: datetime = connection.scalars(sa.select(sa.func.now())).one()
        chosen = sync.options(on_conflict="reschedule", delay=min(delay, wait) if wait else delay, max_wait=wait)
        enqueue(connection, chosen, 1)
        after = row(connection).run_at
        savepoint.rollback()

    asked, limit = now + (min(delay, wait) if wait else delay), before.created_at + wait if wait else LATER
    assert after >= min(now, before.run_at)
    assert after <= max(limit, now, before.run_at if attempt else now)
    if attempt:
        assert after >= before.run_at
    elif asked <= limit:
        assert after == asked


def test_equal_keys_in_one_call_are_one_job_and_the_last_counts(connection: sa.Connection) -> None:
    held = enqueue(connection, sync, 9)

    wanted = [(9, "a"), (1, "b"), (9, "c"), (1, "d")]

    given = enqueue_many(connection, latest, [latest.args(n, what) for n, what in wanted])

    new = given[1].id
    assert given == [
        Enqueued(held.id, False, True), Enqueued(new, True), Enqueued(held.id, False, True), Enqueued(new, False, True)
    ]  # fmt: skip
    assert [each.args for each in rows(connection)] == [
        {"company_id": 9, "what": "c"}, {"company_id": 1, "what": "d"}
    ]  # fmt: skip


def test_each_row_of_a_call_has_a_word_of_its_own(connection: sa.Connection) -> None:
    for n in range(4):
        enqueue(connection, sync, n, "old")

    given = enqueue_many(
        connection, sync, [sync.args(0, "x"), latest.args(1, "x"), debounced.args(2, "x"), latest.args(7, "x")]
    )

    assert [(each.created, each.changed) for each in given] == [
        (False, False), (False, True), (False, True), (True, False)
    ]  # fmt: skip
    assert [each.args["what"] for each in rows(connection)] == ["old", "x", "old", "old", "x"]


def test_many_are_replaced_in_parts(connection: sa.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newjobs, "MOST_ROWS", 7)
    enqueue_many(connection, sync, [{"company_id": n, "what": "old"} for n in range(0, 50, 2)])

    given = enqueue_many(connection, latest, [{"company_id": n, "what": f"new {n}"} for n in range(50)])

    assert [each.changed for each in given] == [True, False] * 25
    assert {each.args["company_id"]: each.args["what"] for each in rows(connection)} == {
        n: f"new {n}" for n in range(50)
    }


def test_what_means_nothing_alone_is_refused_before_any_sql(connection: sa.Connection, sent: list[str]) -> None:
    loose = kind("k", queue="q")
    for wrong, problem in [
        (loose.options(on_conflict="replace"), "on_conflict: 'replace' needs a key"),
        (sync.options(unique=False, on_conflict="reschedule"), "on_conflict: 'reschedule' needs a key"),
        (sync.options(max_wait=HOUR), "max_wait: goes with on_conflict='reschedule' alone"),
        (latest.options(max_wait=HOUR), "max_wait: goes with"),
    ]:
        with pytest.raises(OptionError, match=problem):
            enqueue(connection, wrong, company_id=1)
        with pytest.raises(OptionError, match=problem):
            enqueue_many(connection, wrong, [{"company_id": 1}])
    select = sa.select(sa.literal(1).label("company_id"))
    with pytest.raises(OptionError, match="enqueue_select cannot replace jobs, enqueue_many can"):
        enqueue_select(connection, latest, select)
    with pytest.raises(OptionError, match="max_wait: at least the delay of 0:01:00, got 0:00:01"):
        debounced.options(max_wait=SECOND)
    assert sent == []


def test_the_statements_are_built_once_and_cached_by_sqlalchemy(engine: sa.Engine) -> None:
    assert replace() is replace()
    assert reschedule() is reschedule()
    with engine.connect() as connection:
        for statement in (replace(), reschedule()):
            assert statement._generate_cache_key() is not None
        enqueue(connection, latest, 1)
