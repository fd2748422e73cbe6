"""In an hour of kills the system gives a pid out again: the record does not take one process for another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import sqlalchemy as sa
from audited import CHECKS
from record import RECORD

PID, BEFORE, NOW = 4711, 1, 2  # the workers' ids: one that was killed an hour ago, and one of today
MEMBER = "INSERT INTO members VALUES (:worker_id, :pid, 'w', '1 s', now() + :seconds * interval '1 s')"
KILLED = "INSERT INTO faults (pid, what, at) VALUES (:pid, 'killed', now() + :seconds * interval '1 s')"
RESCUED = (
    "INSERT INTO audit (job_id, what, attempt, worker_id, at)"
    " VALUES (5, 'rescued', 1, :worker_id, now() + :seconds * interval '1 s')"
)
CLAIMED = (
    "INSERT INTO audit (job_id, what, attempt, worker_id, at)"
    " VALUES (5, 'claimed', :attempt, :worker_id, now() + :seconds * interval '1 s')"
)
RUN = (
    "INSERT INTO runs (job_id, attempt, pid, what, at)"
    " VALUES (5, :attempt, :pid, 'began', now() + :seconds * interval '1 s')"
)


class Record:
    """Of two workers with one pid, one after the other."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        connection.exec_driver_sql(RECORD, execution_options={"no_parameters": True})
        self.add(MEMBER, -3_600, worker_id=BEFORE, pid=PID)
        self.add(KILLED, -3_590, pid=PID)
        self.add(MEMBER, -20, worker_id=NOW, pid=PID)

    def add(self, statement: str, seconds: float, **values: Any) -> None:
        self._connection.execute(sa.text(statement), {"seconds": seconds, **values})

    def claim(self, seconds: float, *, attempt: int = 1, worker_id: int = NOW) -> None:
        self.add(CLAIMED, seconds, attempt=attempt, worker_id=worker_id)

    def found(self, check: str) -> Sequence[Any]:
        return self._connection.execute(sa.text(CHECKS[check])).all()


@pytest.fixture
def record(connection: sa.Connection) -> Record:
    return Record(connection)


@pytest.mark.parametrize(("rescued", "late"), [(-8, 0), (-2, 1)], ids=["on time", "late"])
def test_a_rescue_is_on_time_or_late_by_the_kill_of_its_own_worker(record: Record, rescued: int, late: int) -> None:
    record.claim(-15)
    record.add(KILLED, -10, pid=PID)
    record.add(RESCUED, rescued, worker_id=NOW)

    assert len(record.found("G11")) == late


@pytest.mark.parametrize(("killed", "overlaps"), [(-3_590, 1), (-14, 0)], ids=["another process", "this one"])
def test_two_runs_at_once_are_excused_by_the_kill_of_the_first_ones_process(
    record: Record, killed: int, overlaps: int
) -> None:
    record.add(KILLED, killed, pid=PID)
    record.add(RUN, -15, attempt=1, pid=PID)
    record.add(RUN, -10, attempt=2, pid=PID + 1)

    assert len(record.found("G5")) == overlaps
