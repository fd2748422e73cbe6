"""After an attack the named checks of the guarantees are asked, too: what breaks one of them is reported."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from journal import keep_journal
from named import of_the_record
from record import RECORD

import jobq

WRONG = {
    "G1": "INSERT INTO promised VALUES (5, now())",
    "G1 journal": "INSERT INTO jobq.jobs (id, kind) VALUES (5, 'book'); DELETE FROM jobq.jobs",
    "G5": "INSERT INTO runs (job_id, attempt, pid, what, at) VALUES (5, 1, 7, 'began', now()),"
    " (5, 2, 8, 'began', now() + interval '1 s'), (5, 1, 7, 'effect', now() + interval '2 s')",
    "G6": "INSERT INTO jobq.jobs (id, kind, worker_id, attempt, attempted_at, run_at)"
    " SELECT 5, 'work', id, 1, now(), now() + interval '1 s' FROM jobq.workers",
    "G7": "INSERT INTO jobq.jobs (kind, failures, max_attempts) VALUES ('work', 2, 2)",
    "G11": "INSERT INTO jobq.jobs (kind, worker_id, attempt, attempted_at) VALUES ('work', 4711, 1, now())",
    "G13": "INSERT INTO books VALUES (5, 1)",
}


@pytest.fixture
def record(connection: sa.Connection) -> sa.Connection:
    """With one worker that lives."""
    connection.exec_driver_sql(RECORD, execution_options={"no_parameters": True})
    keep_journal(connection)
    connection.exec_driver_sql(
        "INSERT INTO jobq.workers (id, name, lease, lease_until) VALUES (1, 'w', '1 day', now() + interval '1 day')"
    )
    return connection


def test_a_record_without_a_fault_has_no_violation(record: sa.Connection) -> None:
    job = jobq.enqueue(record, jobq.kind("work", queue="default"))
    record.execute(sa.text("INSERT INTO promised VALUES (:id, now())"), {"id": job.id})

    assert list(of_the_record(record)) == []


@pytest.mark.parametrize("guarantee", WRONG)
def test_what_is_wrong_is_reported_by_its_guarantee(record: sa.Connection, guarantee: str) -> None:
    record.exec_driver_sql(WRONG[guarantee])

    assert {violation.guarantee for violation in of_the_record(record)} == {guarantee.split()[0]}
