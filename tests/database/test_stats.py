from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended, add_job, add_worker

from jobq import admin as looking
from jobq import report, tally
from jobq.model import State
from jobq.statements import stats as live
from jobq.store import counting
from jobq.store.leading import campaign
from jobq.tables import finished_jobs, jobs, kinds, leader, queues

pytestmark = pytest.mark.duty("read")

NOTHING = dict.fromkeys(State, 0)


def test_f64_an_empty_installation_has_zeros_and_no_age(connection: sa.Connection) -> None:
    found = looking.stats(connection)

    assert found.states == NOTHING
    assert (found.oldest_due, found.dead_last_hour, found.live_workers) == (None, 0, 0)
    assert (found.queues, found.kinds, dict(found.unknown_kinds)) == ((), (), {})


def test_f64_an_idle_queue_is_shown_with_zeros(connection: sa.Connection) -> None:
    connection.execute(sa.insert(queues).values(name="declared"))
    connection.execute(sa.insert(kinds).values(kind="k", queue="of-a-handler", max_attempts=5))

    found = looking.stats(connection)

    assert found.queues == (report.QueueStats("declared"), report.QueueStats("of-a-handler"))


def test_f64_with_only_scheduled_jobs_nothing_is_due(connection: sa.Connection) -> None:
    add_job(connection, run_at=NOW + timedelta(hours=1))

    (queue,) = looking.stats(connection).queues

    assert queue == report.QueueStats("default", scheduled=1)


def test_f64_with_only_dead_jobs_nothing_is_due(connection: sa.Connection) -> None:
    add_ended(connection, finished_at=NOW - timedelta(hours=2))

    found = looking.stats(connection)

    assert found.queues == (report.QueueStats("default", dead=1),)
    assert (found.oldest_due, found.dead_last_hour) == (None, 0)


def test_f17_a_job_that_waits_for_its_retry_is_scheduled_and_not_old(connection: sa.Connection) -> None:
    add_job(connection, run_at=NOW + timedelta(hours=1), created_at=NOW - timedelta(days=3), failures=2)
    add_job(connection, run_at=NOW - timedelta(seconds=90), created_at=NOW - timedelta(days=3))

    found = looking.stats(connection)

    assert found.queues == (report.QueueStats("default", ready=1, scheduled=1, oldest_due=timedelta(seconds=90)),)
    assert found.oldest_due == timedelta(seconds=90)


@pytest.mark.parametrize("oldest", range(4))
def test_the_oldest_age_looks_at_all_priorities_and_not_at_running_jobs(connection: sa.Connection, oldest: int) -> None:
    add_job(connection, priority=3 - oldest, run_at=NOW - timedelta(seconds=5))
    add_job(connection, priority=oldest, run_at=NOW - timedelta(seconds=60))
    add_job(connection, priority=1, run_at=NOW - timedelta(hours=1), worker_id=7)

    (queue,) = looking.stats(connection).queues

    assert (queue.ready, queue.running, queue.oldest_due) == (2, 1, timedelta(seconds=60))


def test_counts_of_waiting_jobs_stop_at_their_bound(connection: sa.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (counting, tally):
        monkeypatch.setattr(module, "READY_LIMIT", 10)
    monkeypatch.setattr(counting, "ROOM", 3)
    connection.execute(sa.insert(jobs), [{"queue": "full", "kind": "k"} for _ in range(10)])
    connection.execute(sa.insert(jobs), [{"queue": "over", "kind": "k"} for _ in range(11)])

    found = looking.stats(connection)

    assert [(queue.queue, queue.ready, queue.more_ready) for queue in found.queues] == [
        ("full", 10, False),
        ("over", 10, True),
    ]
    assert (found.states[State.PENDING], found.more_pending) == (20, True)


def test_what_has_ended_is_counted_by_queue_and_by_state(connection: sa.Connection) -> None:
    for state, ages in {"done": [1, 30, 90], "dead": [10, 4000], "cancelled": [5]}.items():
        for age in ages:
            add_ended(connection, state, finished_at=NOW - timedelta(seconds=age))

    found = looking.stats(connection)

    (queue,) = found.queues
    assert (queue.done, queue.dead, queue.cancelled) == (3, 2, 1)
    assert queue.rate_per_second == pytest.approx(3 / 60), "done and dead of the last minute"
    assert found.dead_last_hour == 1
    assert found.states == {**NOTHING, State.DONE: 3, State.DEAD: 2, State.CANCELLED: 1}


def test_durations_are_those_of_the_last_attempts_of_this_hour_and_the_one_before(connection: sa.Connection) -> None:
    for seconds in range(1, 101):
        add_ended(connection, "done", attempted_at=NOW - timedelta(seconds=seconds), finished_at=NOW)
    add_ended(connection, "done", attempted_at=NOW - timedelta(days=9), finished_at=NOW - timedelta(hours=2))
    add_ended(connection, "cancelled", attempted_at=None)

    (kind,) = looking.stats(connection).kinds

    assert (kind.kind, kind.finished, kind.longest) == ("email.send", 100, timedelta(seconds=100))
    assert kind.p50 / timedelta(seconds=50.5) == pytest.approx(1, abs=0.1)
    assert kind.p95 / timedelta(seconds=95.05) == pytest.approx(1, abs=0.1)


def test_a_pause_is_shown_until_it_is_over(connection: sa.Connection) -> None:
    later, earlier = NOW + timedelta(hours=1), NOW - timedelta(hours=1)
    connection.execute(sa.insert(queues).values(name="apollo", paused_until=later, pause_reason="401"))
    connection.execute(sa.insert(queues).values(name="email", paused_until=earlier, pause_reason="old"))

    apollo, email = looking.stats(connection).queues

    assert apollo.paused_until == connection.scalar(sa.select(later))
    assert apollo.pause_reason == "401"
    assert (email.paused_until, email.pause_reason) == (None, None)


def test_jobs_of_a_kind_that_no_live_worker_knows_are_named(connection: sa.Connection) -> None:
    add_worker(connection, 7, kinds=["email.send"])
    add_worker(connection, 8, kinds=["report"], lease_until=NOW - timedelta(seconds=1))
    for kind in ("email.send", "report", "report", "unheard-of"):
        add_job(connection, kind=kind)
    add_job(connection, kind="report", worker_id=8)

    found = looking.stats(connection)

    assert dict(found.unknown_kinds) == {"report": 2, "unheard-of": 1}
    assert found.live_workers == 1


def test_dead_jobs_are_counted_up_to_their_bound(connection: sa.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (counting, tally):
        monkeypatch.setattr(module, "READY_LIMIT", 5)
    for queue, number in {"full": 5, "over": 6}.items():
        for _ in range(number):
            add_ended(connection, "dead", queue=queue)

    found = looking.stats(connection)

    assert [(queue.queue, queue.dead, queue.more_dead) for queue in found.queues] == [
        ("full", 5, False),
        ("over", 5, True),
    ]


def test_where_very_many_ended_just_now_the_count_says_so(
    connection: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "RECENT_LIMIT", 3)
    for _ in range(4):
        add_ended(connection, "done")

    (queue,) = looking.stats(connection).queues

    assert (queue.done, queue.more_done) == (3, True)


def test_outcomes_are_counted_by_queue_kind_and_word(connection: sa.Connection) -> None:
    for outcome in ("ok: sent", None, "fail: no match", "skip"):
        add_ended(connection, "done", outcome=outcome)
    add_ended(connection, "dead", outcome="err: X")
    add_ended(connection, "done", outcome="ok", finished_at=NOW - timedelta(hours=30))

    found = looking.stats(connection).outcomes

    assert [(each.queue, each.state, each.outcome, each.finished) for each in found] == [
        ("default", "dead", "err", 1),
        ("default", "done", "fail", 1),
        ("default", "done", "ok", 2),
        ("default", "done", "skip", 1),
    ]


def test_workers_are_listed_with_what_they_run(connection: sa.Connection) -> None:
    add_worker(connection, 7, started_at=NOW - timedelta(hours=1), queues=["email"])
    add_worker(connection, 8, lease_until=NOW - timedelta(seconds=1), kinds=None)
    for _ in range(3):
        add_job(connection, worker_id=7)

    first, second = looking.workers(connection)

    assert (first.id, first.running, first.alive, first.queues) == (7, 3, True, ("email",))
    assert (second.id, second.running, second.alive, second.queues, second.kinds) == (8, 0, False, None, ())


def test_every_queue_that_there_is_a_trace_of_has_a_name(connection: sa.Connection) -> None:
    add_job(connection, queue="open")
    add_ended(connection, queue="ended")
    connection.execute(sa.insert(queues).values(name="declared"))

    assert looking.queue_names(connection) == ["declared", "ended", "open"]


def test_the_leader_among_the_workers_is_told(connection: sa.Connection) -> None:
    for worker_id in (7, 8):
        add_worker(connection, worker_id)
    campaign(connection, 8, timedelta(seconds=10))

    assert {row.id: row.is_leader for row in looking.workers(connection)} == {7: False, 8: True}
    connection.execute(sa.update(leader).values(lease_until=NOW))
    assert not any(row.is_leader for row in looking.workers(connection))


@pytest.mark.slow
def test_no_count_reads_a_whole_table(connection: sa.Connection) -> None:
    """With so many rows that the planner knows it would be dear, on a connection without any settings."""
    connection.exec_driver_sql("""
        INSERT INTO jobq.jobs (queue, kind, run_at)
        SELECT 'q' || mod(n, 3), 'k' || mod(n, 5), now() + (n - 90000) * interval '1 s'
        FROM generate_series(1, 100000) n;
        INSERT INTO jobq.finished_jobs (id, queue, kind, args, priority, run_at, attempt, failures, attempted_at,
                                        created_at, meta, errors, state, finished_at, expires_at)
        SELECT -n, 'q' || mod(n, 3), 'k' || mod(n, 5), jsonb_build_object('n', n), 1, at, 1, 0, at - interval '2 s', at,
               '{}', '[]', CASE WHEN mod(n, 50) = 0 THEN 'dead' ELSE 'done' END, at, at
        FROM (SELECT n, now() - (100000 - n) * interval '0.8 s' AS at FROM generate_series(1, 100000) n) AS old;
        SELECT brin_summarize_new_values('jobq.finished_jobs_finished');
        ANALYZE jobq.jobs; ANALYZE jobq.finished_jobs;
    """)
    since = connection.scalar(sa.select(NOW - timedelta(minutes=2)))
    asked: dict[Any, dict[str, Any]] = {
        live.waiting(): {"most": 10_500},
        live.dead(): {"most": 10_001},
        live.recent(): {"most": 20_000, "since": since},
    }

    for statement, binds in asked.items():
        compiled = statement.compile(dialect=connection.dialect)
        lines = connection.exec_driver_sql(f"EXPLAIN {compiled}", {**compiled.params, **binds}).scalars()
        assert [line for line in lines if "Seq Scan on" in line and "jobs" in line] == []

    found = looking.stats(connection)
    assert [(queue.ready, queue.more_ready) for queue in found.queues] == [(10_000, True)] * 3
    assert sum(queue.scheduled for queue in found.queues) == 10_000
    assert found.states[State.DEAD] == 2_000


def test_a_schema_of_another_name_is_read_through_the_translation(
    connection: sa.Connection,
) -> None:
    connection.exec_driver_sql("ALTER SCHEMA jobq RENAME TO elsewhere")
    other = connection.execution_options(schema_translate_map={"jobq": "elsewhere"})
    other.execute(sa.insert(jobs).values(queue="q", kind="k"))
    ended = {"id": 99, "queue": "q", "kind": "k", "args": {}, "priority": 1, "run_at": NOW, "attempt": 1}
    rest = {"failures": 1, "created_at": NOW, "meta": {}, "errors": [], "state": "dead", "expires_at": NOW}
    other.execute(sa.insert(finished_jobs).values({**ended, **rest}))

    assert looking.retry(other, finished_jobs.c.state == "dead").ids == (99,)
    assert looking.stats(other).states[State.PENDING] == 2
