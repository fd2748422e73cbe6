from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended, add_job, add_worker

from jobq import admin as looking
from jobq import report
from jobq.model import State
from jobq.tables import finished_jobs, jobs, kinds, queues

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


def test_the_oldest_age_looks_at_all_priorities_and_not_at_running_jobs(connection: sa.Connection) -> None:
    add_job(connection, priority=0, run_at=NOW - timedelta(seconds=5))
    add_job(connection, priority=3, run_at=NOW - timedelta(seconds=60))
    add_job(connection, priority=1, run_at=NOW - timedelta(hours=1), worker_id=7)

    (queue,) = looking.stats(connection).queues

    assert (queue.ready, queue.running, queue.oldest_due) == (2, 1, timedelta(seconds=60))


def test_counts_of_waiting_jobs_stop_at_their_bound(connection: sa.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "READY_LIMIT", 10)
    monkeypatch.setattr(looking, "READY_LIMIT", 10)
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


def test_durations_are_those_of_the_last_attempts_of_the_last_hour(connection: sa.Connection) -> None:
    for seconds in range(1, 101):
        add_ended(connection, "done", attempted_at=NOW - timedelta(seconds=seconds), finished_at=NOW)
    add_ended(connection, "done", attempted_at=NOW - timedelta(days=9), finished_at=NOW - timedelta(hours=2))
    add_ended(connection, "cancelled", attempted_at=None)

    (kind,) = looking.stats(connection).kinds

    assert (kind.kind, kind.finished, kind.longest) == ("email.send", 100, timedelta(seconds=100))
    assert (kind.p50, kind.p95) == (timedelta(seconds=50.5), timedelta(seconds=95.05))


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


def test_the_counts_of_waiting_jobs_read_the_lane_index_alone(connection: sa.Connection) -> None:
    from jobq.statements.stats import waiting

    connection.execute(sa.insert(jobs), [{"queue": f"q{n % 3}", "kind": "k"} for n in range(3_000)])
    connection.execute(sa.text("ANALYZE jobq.jobs"))
    connection.execute(sa.text("SET LOCAL enable_seqscan = off"))
    compiled = waiting().compile(dialect=connection.dialect)

    plan = "\n".join(connection.exec_driver_sql(f"EXPLAIN {compiled}", {**compiled.params, "most": 10_001}).scalars())

    assert "jobs_lane" in plan
    assert "Seq Scan on jobs" not in plan


def test_a_schema_of_another_name_is_read_through_the_translation(
    connection: sa.Connection,
) -> None:
    other = connection.execution_options(schema_translate_map={"jobq": "elsewhere"})
    other.execute(sa.schema.CreateSchema("elsewhere"))
    jobs.metadata.create_all(other)
    other.execute(sa.insert(jobs).values(queue="q", kind="k"))
    ended = {"id": 99, "queue": "q", "kind": "k", "args": {}, "priority": 1, "run_at": NOW, "attempt": 1}
    rest = {"failures": 1, "created_at": NOW, "meta": {}, "errors": [], "state": "dead", "expires_at": NOW}
    other.execute(sa.insert(finished_jobs).values({**ended, **rest}))

    assert looking.retry(other, finished_jobs.c.state == "dead").ids == (99,)
    assert looking.stats(other).states[State.PENDING] == 2
