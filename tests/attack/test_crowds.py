"""Who is taken for one too many in a limited queue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from crowds import KEYED, LIMITED, OPEN, Run, beyond_the_limit
from evidence import JOURNAL
from test_audited import FROZEN
from test_pids_that_come_again import KILLED, PID, RUN, Record

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def run(job: int, began: float, until: float | None, *, subject: str = "q", most: int = 1) -> Run:
    ends = None if until is None else NOON + timedelta(seconds=until)
    return Run(subject, most, job, 1, NOON + timedelta(seconds=began), ends)


@pytest.mark.parametrize(
    ("runs", "too_many"),
    [
        pytest.param([run(1, 0, 1), run(2, 1, 2)], [], id="one after the other"),
        pytest.param([run(1, 0, 1), run(2, 0.9, 2)], [2], id="before the end of the other"),
        pytest.param([run(1, 0, None), run(2, 100, 101)], [2], id="the other never ended"),
        pytest.param([run(1, 0, 9, most=2), run(2, 1, 9, most=2)], [], id="as many as may"),
        pytest.param([run(1, 0, 9, most=2), run(2, 1, 9, most=2), run(3, 2, 3, most=2)], [3], id="one more than may"),
        pytest.param([run(1, 0, 9), run(2, 1, 2, subject="other")], [], id="another subject"),
        pytest.param([run(1, 0, 9), run(2, 5, 4)], [], id="one without a right"),
    ],
)
def test_a_run_is_too_much_where_as_many_as_may_go_on_already(runs: list[Run], too_many: list[int]) -> None:
    assert [each.job_id for each in beyond_the_limit(runs)] == too_many


@pytest.mark.parametrize(
    ("fault", "at", "until", "ends"),
    [
        pytest.param(KILLED, -12, None, -12, id="killed"),
        pytest.param(KILLED, -18, None, None, id="killed before, under the same pid"),
        pytest.param(FROZEN, -14, -12, -13.5, id="frozen past half its lease"),
        pytest.param(FROZEN, -14, -13.6, None, id="frozen for less"),
        pytest.param(FROZEN, -14, None, -13.5, id="frozen for ever"),
    ],
)
def test_a_run_goes_on_until_its_process_is_killed_or_has_stood_still_for_too_long(
    connection: sa.Connection, fault: str, at: float, until: float | None, ends: float | None
) -> None:
    record = Record(connection)
    connection.exec_driver_sql("INSERT INTO jobq.queues (name, concurrency) VALUES ('q', 1)")
    connection.exec_driver_sql("INSERT INTO jobq.jobs (id, queue, kind) OVERRIDING SYSTEM VALUE VALUES (5, 'q', 'k')")
    record.claim(-15, attempt=1)
    record.add(RUN, -15, attempt=1, pid=PID)
    record.add(fault, at, pid=PID, **({"until": until} if fault is FROZEN else {}))

    (found,) = [Run(*row) for row in connection.execute(sa.text(LIMITED))]

    lasted = None if found.until is None else (found.until - found.began).total_seconds()
    assert (found.subject, found.most) == ("q", 1)
    assert lasted == (None if ends is None else pytest.approx(ends + 15, abs=0.01))


KEYED_JOB = "INSERT INTO promised VALUES (:id, now(), 'one')"
CHANGE = (
    "INSERT INTO journal (at, relation, op, job_id, attempt)"
    " VALUES (now() + :seconds * interval '1 s', 'jobs', :op, :id, 0)"
)


@pytest.mark.parametrize(("second", "too_many"), [(-9, []), (-11, [6])], ids=["one after the other", "both open"])
def test_two_open_jobs_with_one_unique_key_are_seen_though_both_have_ended(
    connection: sa.Connection, second: float, too_many: list[int]
) -> None:
    record = Record(connection)
    JOURNAL.create(connection)
    for id_, began, ended in ((5, -15, -10), (6, second, -5)):
        connection.execute(sa.text(KEYED_JOB), {"id": id_})
        record.add(CHANGE, began, op="INSERT", id=id_)
        record.add(CHANGE, ended, op="DELETE", id=id_)

    found = beyond_the_limit(Run(*row) for row in connection.execute(sa.text(OPEN)))

    assert [each.job_id for each in found] == too_many


def test_two_jobs_of_one_unique_key_that_run_at_once_are_seen_whoever_has_the_key_by_then(
    connection: sa.Connection,
) -> None:
    record = Record(connection)
    for id_ in (5, 6):
        connection.execute(sa.text(KEYED_JOB), {"id": id_})
        record.add(RUN.replace("(5,", "(:id,"), -20 + id_, attempt=1, pid=PID, id=id_)

    found = beyond_the_limit(Run(*row) for row in connection.execute(sa.text(KEYED)))

    assert [each.job_id for each in found] == [6]
