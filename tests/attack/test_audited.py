"""The judge of kills and freezes, before records that are made up: it excuses what it has to, and nothing else."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from test_pids_that_come_again import KILLED, NOW, PID, RESCUED, RUN, Record

STEADY = PID + 1  # another process, which nothing is done to
FROZEN = (
    "INSERT INTO faults (pid, what, at, until) VALUES (:pid, 'frozen', now() + :seconds * interval '1 s',"
    " now() + :until * interval '1 s')"
)


@pytest.fixture
def record(connection: sa.Connection) -> Record:
    """Of one worker, at work for 20 s now, whose lease is 1 s long."""
    return Record(connection)


@pytest.mark.parametrize(
    ("frozen", "until", "overlaps"),
    [
        pytest.param(-14, -12, 0, id="while it stood still"),
        pytest.param(-14, -9, 0, id="and it still does"),
        pytest.param(-14, None, 0, id="for ever"),
        pytest.param(-18, -16, 1, id="before it began"),
        pytest.param(-18, -14.9, 1, id="it had begun when it woke up"),
        pytest.param(-14, -13.9, 1, id="for less than its lease"),
        pytest.param(-10.1, -5, 1, id="for less than its lease when the next began"),
        pytest.param(-9, -5, 1, id="after the next had begun"),
    ],
)
def test_two_runs_at_once_are_excused_by_a_freeze_of_the_first_one_past_its_lease(
    record: Record, frozen: float, until: float | None, overlaps: int
) -> None:
    record.claim(-15, attempt=1)
    record.add(RUN, -15, attempt=1, pid=PID)
    record.add(FROZEN, frozen, pid=PID, until=until)
    record.add(RUN, -10, attempt=2, pid=STEADY)

    assert len(record.found("G5")) == overlaps


def test_a_run_that_begins_when_its_worker_wakes_up_is_of_the_claim_before(record: Record) -> None:
    record.claim(-15, attempt=1)
    record.add(FROZEN, -14.9, pid=PID, until=-11)
    record.add(RUN, -12, attempt=2, pid=STEADY)
    record.add(RUN, -10.9, attempt=1, pid=PID)

    assert record.found("G5") == []


@pytest.mark.parametrize("killed", [-16, -9], ids=["before it began", "after the next had begun"])
def test_another_kill_excuses_nothing(record: Record, killed: float) -> None:
    record.claim(-15, attempt=1)
    record.add(KILLED, killed, pid=PID)
    record.add(RUN, -15, attempt=1, pid=PID)
    record.add(RUN, -10, attempt=2, pid=STEADY)

    assert len(record.found("G5")) == 1


@pytest.mark.parametrize(
    ("until", "rescued", "late"),
    [
        pytest.param(-2, -8, 0, id="on time"),
        pytest.param(-2, -4, 1, id="late"),
        pytest.param(-4, None, 1, id="never, and it woke up"),
        pytest.param(-8, -7, 0, id="it woke up in time"),
    ],
)
def test_a_job_of_a_worker_that_stands_still_is_rescued_on_time_or_late(
    record: Record, until: float, rescued: float | None, late: int
) -> None:
    record.claim(-11, worker_id=NOW)
    record.add(FROZEN, -10, pid=PID, until=until)
    if rescued is not None:
        record.add(RESCUED, rescued, worker_id=NOW)

    assert len(record.found("G11")) == late


def test_what_a_worker_claims_after_it_woke_up_is_not_late(record: Record) -> None:
    record.add(FROZEN, -18, pid=PID, until=-10)
    record.claim(-9)

    assert record.found("G11") == []
