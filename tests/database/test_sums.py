from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended
from store_rows import ME

from jobq import admin
from jobq.histogram import PER_OCTAVE
from jobq.model import State
from jobq.statements import sums as statements
from jobq.store.leading import Office, campaign, sum_up
from jobq.tables import finished_jobs, leader, sums

MINUTE = statements.start_of("minute", NOW)


@pytest.fixture
def office(connection: sa.Connection) -> Office:
    office = campaign(connection, ME, timedelta(hours=1))
    assert office is not None
    return office


def sum_all(connection: sa.Connection, office: Office) -> int:
    """Sum up all that there is; in how many steps."""
    steps = 1
    while not sum_up(connection, office).is_last:
        steps += 1
    return steps


def again(connection: sa.Connection) -> None:
    """As if two minutes had gone by."""
    back = leader.c.summed_until - timedelta(minutes=2)
    connection.execute(sa.update(leader).values(summed_until=back))


def a_minute_goes_by(connection: sa.Connection) -> None:
    """All that has happened lies a minute further back."""
    minute = timedelta(minutes=1)
    connection.execute(sa.update(leader).values(summed_until=leader.c.summed_until - minute))
    connection.execute(sa.update(finished_jobs).values(finished_at=finished_jobs.c.finished_at - minute))


def rows(connection: sa.Connection, minutes: int = 1) -> list[tuple[Any, ...]]:
    columns = sums.c.queue, sums.c.kind, sums.c.state, sums.c.word, sums.c.finished
    chosen = sa.select(*columns).where(sums.c.minutes == minutes).order_by(sums.c.starts_at, *columns)
    return [tuple(row) for row in connection.execute(chosen)]


def test_what_ended_is_counted_by_minute_queue_kind_state_and_word(connection: sa.Connection, office: Office) -> None:
    ago = {n: MINUTE - timedelta(minutes=n) for n in (3, 5)}
    add_ended(connection, "done", outcome="ok: sent", finished_at=ago[5])
    add_ended(connection, "done", outcome=None, finished_at=ago[5])
    add_ended(connection, "done", outcome="fail: no match", finished_at=ago[5])
    add_ended(connection, "dead", outcome="err: X", queue="email", finished_at=ago[3])
    add_ended(connection, "cancelled", outcome="err: cancelled", kind="report", finished_at=ago[3])

    sum_all(connection, office)

    assert rows(connection) == [
        ("default", "email.send", "done", "fail", 1),
        ("default", "email.send", "done", "ok", 2),
        ("default", "report", "cancelled", "err", 1),
        ("email", "email.send", "dead", "err", 1),
    ]
    assert sum(row[-1] for row in rows(connection, 60)) == 5


def test_a_minute_that_has_not_ended_or_just_now_is_left_for_later(connection: sa.Connection, office: Office) -> None:
    add_ended(connection, "done", finished_at=NOW)

    sum_all(connection, office)

    assert rows(connection) == []
    until = connection.scalar(sa.select(leader.c.summed_until))
    assert until == connection.scalar(sa.select(statements.start_of("minute", NOW - timedelta(seconds=15))))
    assert sum_all(connection, office) == 1, "there is nothing more to do"


def test_summing_again_changes_nothing_and_loses_nothing(connection: sa.Connection, office: Office) -> None:
    first, _ = (add_ended(connection, "done", finished_at=MINUTE - timedelta(minutes=2)) for _ in range(2))
    sum_all(connection, office)
    counted = rows(connection), rows(connection, 60)

    again(connection)
    sum_all(connection, office)
    assert (rows(connection), rows(connection, 60)) == counted
    admin.retry(connection, first)
    again(connection)
    sum_all(connection, office)

    assert (rows(connection), rows(connection, 60)) == counted, "it did end, and was retried by hand"


def test_a_commit_that_came_late_is_counted_with_the_next_minute(connection: sa.Connection, office: Office) -> None:
    sum_all(connection, office)
    last = connection.scalar(sa.select(leader.c.summed_until)) - timedelta(minutes=1)
    add_ended(connection, "done", finished_at=last)

    a_minute_goes_by(connection)
    sum_all(connection, office)

    assert rows(connection) == [("default", "email.send", "done", "ok", 1)]


def test_what_is_summed_already_is_not_counted_once_more_among_what_ended_just_now(connection: sa.Connection) -> None:
    add_ended(connection, "done", finished_at=NOW - timedelta(seconds=30))
    hour = {"minutes": 60, "starts_at": statements.start_of("hour", NOW), "buckets": [], "counts": []}
    what = {"queue": "default", "kind": "email.send", "state": "done", "word": "ok", "finished": 1}
    connection.execute(sa.insert(sums).values(**hour, **what))
    connection.execute(sa.insert(leader).values(name="maintenance", summed_until=NOW))

    (queue,) = admin.stats(connection).queues

    assert (queue.done, queue.rate_per_second) == (1, pytest.approx(1 / 60))


def test_a_leader_that_finds_nothing_summed_starts_a_day_ago(connection: sa.Connection, office: Office) -> None:
    for hours in (1, 23, 25):
        add_ended(connection, "done", finished_at=NOW - timedelta(hours=hours))

    steps = sum_all(connection, office)

    assert steps == 1
    assert sum(row[-1] for row in rows(connection)) == 2
    assert sum(row[-1] for row in rows(connection, 60)) == 2


def test_very_many_are_summed_ten_minutes_at_a_time(connection: sa.Connection, office: Office) -> None:
    connection.exec_driver_sql("""
        INSERT INTO jobq.finished_jobs (id, queue, kind, args, priority, run_at, attempt, failures, created_at, meta,
                                        errors, state, finished_at, expires_at)
        SELECT n, 'q', 'k', '{}', 1, at, 1, 0, at, '{}', '[]', 'done', at, at
        FROM generate_series(1, 50000) n, (SELECT now() - interval '1 hour' AS at) AS old
    """)

    steps = sum_all(connection, office)

    assert steps == pytest.approx(154, abs=3)  # up to the last hour, which is few
    assert sum(row[-1] for row in rows(connection)) == 50_000


def test_hours_hold_what_their_minutes_hold(connection: sa.Connection, office: Office) -> None:
    hour = statements.start_of("hour", NOW) - timedelta(hours=3)
    for minutes, seconds in ((0, 1), (1, 2), (1, 2), (59, 30)):
        at = hour + timedelta(minutes=minutes)
        add_ended(connection, "done", finished_at=at, attempted_at=at - timedelta(seconds=seconds))
    add_ended(connection, "done", finished_at=hour + timedelta(minutes=30), attempted_at=None)

    sum_all(connection, office)

    (found,) = connection.execute(sa.select(sums).where(sums.c.minutes == 60)).all()
    assert (found.starts_at, found.finished) == (connection.scalar(sa.select(hour)), 5)
    assert found.longest == timedelta(seconds=30)
    assert (found.buckets, found.counts) == ([39, 43, 59], [1, 2, 1])


def test_hours_are_those_of_utc_whatever_the_session_has(connection: sa.Connection, office: Office) -> None:
    connection.exec_driver_sql("SET LOCAL timezone = 'Asia/Kathmandu'")  # 5:45 ahead
    add_ended(connection, "done", finished_at=NOW - timedelta(hours=2))

    sum_all(connection, office)

    (start,) = connection.scalars(sa.select(sums.c.starts_at).where(sums.c.minutes == 60))
    assert start.astimezone(UTC).minute == 0


def test_stats_are_the_same_before_and_after_summing(connection: sa.Connection, office: Office) -> None:
    for minutes in (1.6, 3, 40):
        ended = MINUTE - timedelta(minutes=minutes)
        for state in ("done", "dead", "cancelled"):
            add_ended(connection, state, finished_at=ended, attempted_at=ended - timedelta(seconds=minutes))
    before = admin.stats(connection)

    sum_all(connection, office)
    after = admin.stats(connection)

    assert (before.summed_until, after.summed_until) == (None, connection.scalar(sa.select(leader.c.summed_until)))
    assert (after.queues, after.states, after.outcomes) == (before.queues, before.states, before.outcomes)
    assert after.states == {**dict.fromkeys(State, 0), State.DONE: 3, State.DEAD: 3, State.CANCELLED: 3}
    assert [kind.longest for kind in after.kinds] == [timedelta(seconds=40)]
    assert after.kinds == before.kinds


def test_what_was_deleted_after_it_was_summed_is_still_counted_as_done(
    connection: sa.Connection, office: Office
) -> None:
    add_ended(connection, "done", finished_at=NOW - timedelta(minutes=10))
    sum_all(connection, office)
    connection.execute(sa.delete(finished_jobs))

    found = admin.stats(connection)

    assert found.states[State.DONE] == 1
    assert [(each.kind, each.outcome, each.finished) for each in found.outcomes] == [("email.send", "ok", 1)]


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(None, None), (0, 0), (0.0005, 0), (0.001, 0), (0.0012, 1), (0.0021, 4), (1, 39), (86400, 105)],
)
def test_a_span_falls_into_the_bucket_of_its_size(
    connection: sa.Connection, seconds: float | None, bucket: int | None
) -> None:
    took = None if seconds is None else timedelta(seconds=seconds)

    found = connection.scalar(sa.select(statements.bucket_of(sa.cast(took, sa.Interval))))

    assert found == bucket
    if bucket and seconds:
        assert 2 ** (bucket / PER_OCTAVE) <= seconds * 1000 < 2 ** ((bucket + 1) / PER_OCTAVE)


def test_the_jobs_of_a_window_are_found_by_the_index_of_their_time(connection: sa.Connection) -> None:
    connection.exec_driver_sql("""
        INSERT INTO jobq.finished_jobs (id, queue, kind, args, priority, run_at, attempt, failures, created_at, meta,
                                        errors, state, finished_at, expires_at)
        SELECT n, 'q', 'k', jsonb_build_object('n', n), 1, at, 1, 0, at, '{}', '[]', 'done', at, at
        FROM (SELECT n, now() - (20000 - n) * interval '3 s' AS at FROM generate_series(1, 20000) n) AS old
    """)
    connection.exec_driver_sql("SELECT brin_summarize_new_values('jobq.finished_jobs_finished')")
    connection.exec_driver_sql("ANALYZE jobq.finished_jobs")
    for setting in ("enable_seqscan", "enable_bitmapscan"):
        connection.exec_driver_sql(f"SET LOCAL {setting} = off")
    connection.execute(statements.prepare())
    compiled = statements.sum_minutes().compile(dialect=connection.dialect)
    until = datetime.now(UTC)
    binds = {**compiled.params, "since": until - timedelta(minutes=2), "until": until, "me": 1, "the_term": 1}

    plan = "\n".join(connection.exec_driver_sql(f"EXPLAIN {compiled}", binds).scalars())

    assert "Bitmap Index Scan on finished_jobs_finished" in plan
    assert "Seq Scan on finished_jobs" not in plan
