from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_job, add_worker

from jobq import overview as module
from jobq.model import Progress
from jobq.overview import overview
from jobq.store.leading import campaign
from jobq.tables import jobs, kinds

SECOND = timedelta(seconds=1)


def running(connection: sa.Connection, worker_id: int = 7, *, since: float = 5, **values: Any) -> int:
    began = NOW - since * SECOND
    return add_job(connection, **{"worker_id": worker_id, "attempt": 1, "attempted_at": began, **values})


def test_nothing_is_an_overview_too(connection: sa.Connection) -> None:
    found = overview(connection)

    assert (found.stats.queues, found.members, found.jobs, found.running) == ((), (), (), 0)


def test_the_job_that_has_run_longest_comes_first_with_all_that_is_known_of_it(connection: sa.Connection) -> None:
    add_worker(connection, 7, name="w7")
    connection.execute(sa.insert(kinds).values(kind="slow", queue="q", max_attempts=5, timeout=60 * SECOND))
    young = running(connection, 8, since=5)
    told = {"progress": {"fraction": 0.4, "message": "page 4 of 10", "attempt": 3}}
    old = running(connection, since=50, queue="q", kind="slow", priority=2, attempt=3, meta=told)
    add_job(connection)

    found = overview(connection)

    assert [job.id for job in found.jobs] == [old, young]
    job, orphan = found.jobs
    assert (job.queue, job.kind, job.priority, job.attempt, job.worker) == ("q", "slow", 2, 3, "w7")
    assert (job.timeout, job.progress) == (60 * SECOND, Progress(0.4, "page 4 of 10", 3))
    assert 50 * SECOND <= job.runs_for < 90 * SECOND
    assert (orphan.worker, orphan.worker_id, orphan.timeout, orphan.progress) == (None, 8, None, None)
    assert found.running == 2
    assert found.at == connection.scalar(sa.select(NOW))


@pytest.mark.parametrize(
    "meta",
    [
        {}, {"progress": None}, {"progress": 0.5}, {"progress": []}, {"progress": {"fraction": "0.5"}},
        {"progress": {"fraction": 7}}, {"progress": {"fraction": True}}, {"progress": {"message": "half"}},
        {"progress": {"fraction": 0.5, "attempt": 1}},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_not_the_progress_of_this_attempt_is_none(connection: sa.Connection, meta: dict[str, Any]) -> None:
    running(connection, attempt=2, meta=meta)

    (job,) = overview(connection).jobs

    assert job.progress is None


@pytest.mark.parametrize(
    ("own", "shown"),
    [(5, 5), (0.5, 0.5), (None, 60), ("5", 60), (True, 60), (-1, 60), (1e308, 60), ([], 60)],
    ids=str,
)
def test_a_timeout_of_the_jobs_own_counts_before_that_of_its_handler(
    connection: sa.Connection, own: Any, shown: float
) -> None:
    connection.execute(sa.insert(kinds).values(kind="slow", queue="q", max_attempts=5, timeout=60 * SECOND))
    running(connection, kind="slow", meta={"timeout": own})

    (job,) = overview(connection).jobs

    assert job.timeout == shown * SECOND


def test_workers_are_shown_with_what_each_runs_and_for_how_long_they_are_silent(connection: sa.Connection) -> None:
    for number, silent in ((7, 10), (8, 90)):
        add_worker(
            connection, number, lease_until=NOW + (60 - silent) * SECOND, started_at=NOW - (100 - number) * SECOND
        )
    campaign(connection, 7, timedelta(seconds=60))
    for worker_id in (7, 7, 8):
        running(connection, worker_id)

    busy, lost = overview(connection).members

    assert (busy.worker.id, busy.worker.running, busy.worker.alive, busy.worker.is_leader) == (7, 2, True, True)
    assert (lost.worker.id, lost.worker.running, lost.worker.alive, lost.worker.is_leader) == (8, 1, False, False)
    assert (busy.silent_for, lost.silent_for) == (10 * SECOND, 90 * SECOND)


def test_of_one_queue_there_are_its_jobs_and_the_workers_that_serve_it(connection: sa.Connection) -> None:
    for number, queues in ((1, None), (2, ["a", "b"]), (3, ["b"])):
        add_worker(connection, number, queues=queues, started_at=NOW - (100 - number) * SECOND)
    ours = running(connection, 2, queue="a")
    for worker_id in (1, 2, 3):
        running(connection, worker_id, queue="b", since=9)

    found = overview(connection, queue="a")

    assert [job.id for job in found.jobs] == [ours]
    assert found.running == 1
    assert [queue.queue for queue in found.stats.queues] == ["a"]
    assert {member.worker.id: member.worker.running for member in found.members} == {1: 1, 2: 2}, "of all queues"


def test_of_a_queue_that_nobody_knows_there_is_nothing(connection: sa.Connection) -> None:
    running(connection)

    found = overview(connection, queue="emial")

    assert (found.stats.queues, found.jobs, found.running) == ((), (), 0)


def test_more_than_is_shown_is_counted(connection: sa.Connection) -> None:
    for worker_id, since in ((7, 30), (7, 20), (8, 10)):
        running(connection, worker_id, since=since)
        add_worker(connection, worker_id) if since != 20 else None

    found = overview(connection, shown=1)

    assert [job.worker_id for job in found.jobs] == [7]
    assert found.running == 3
    assert {member.worker.id: member.worker.running for member in found.members} == {7: 2, 8: 1}


def test_what_runs_is_looked_for_in_front_of_the_lanes_alone(
    connection: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a look costs the same however many jobs wait."""
    for name, value in (("READY_LIMIT", 10), ("ROOM", 2)):
        monkeypatch.setattr(module, name, value)
    early = running(connection, run_at=NOW - 100 * SECOND)
    connection.execute(sa.insert(jobs).values(queue="default", kind="k", run_at=NOW - 50 * SECOND), [{}] * 30)
    running(connection, run_at=NOW - 20 * SECOND)
    other_lane = running(connection, run_at=NOW - 20 * SECOND, priority=3)

    found = overview(connection)

    assert {job.id for job in found.jobs} == {early, other_lane}
