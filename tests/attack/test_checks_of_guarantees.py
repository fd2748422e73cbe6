"""Each check of a guarantee answers `[]` where nothing is wrong, and reports what was broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import guarantees
import pytest
import sqlalchemy as sa
from evidence import BOOKS, EFFECTS, own
from journal import keep_journal

import jobq
from jobq.tables import finished_jobs, jobs, queues, slots, workers

NOW = sa.func.now()
DAY = timedelta(days=1)
LIVE, GONE = 7, 8  # workers' ids


class Rows:
    """Rows as a fault would leave them."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        own.create_all(connection)
        self._insert(workers, id=LIVE, name="live", lease=DAY, lease_until=NOW + DAY)

    def _insert(self, table: sa.Table, **values: Any) -> Any:
        statement = sa.insert(table).values(**values)
        return self.connection.execute(statement.returning(*table.primary_key) if table.primary_key else statement)

    def open(self, **values: Any) -> int:
        return int(self._insert(jobs, **{"kind": "k", **values}).scalar_one())

    def running(self, worker_id: int = LIVE, **values: Any) -> int:
        return self.open(**{"worker_id": worker_id, "attempt": 1, "attempted_at": NOW, **values})

    def ended(self, id_: int, **values: Any) -> int:
        columns = {"queue": "q", "kind": "k", "args": {}, "priority": 1, "run_at": NOW, "attempt": 1, "failures": 0}
        times = {"created_at": NOW, "expires_at": NOW + DAY, "state": "done", "meta": {}, "errors": []}
        self._insert(finished_jobs, **{"id": id_, **columns, **times, **values})
        return id_

    def run(self, job_id: int, attempt: int = 1, begin: int = 0, end: int | None = None, pid: int = 1) -> str:
        """A run from so many seconds after now to so many after now."""
        run = uuid4()
        ended = None if end is None else NOW + timedelta(seconds=end)
        at = NOW + timedelta(seconds=begin)
        self._insert(EFFECTS, run=run, job_id=job_id, attempt=attempt, pid=pid, at=at, ended_at=ended)
        return str(run)

    def booked(self, job_id: int, attempt: int = 1) -> None:
        self._insert(BOOKS, job_id=job_id, attempt=attempt)

    def limited(self, name: str, **limit: Any) -> None:
        self._insert(queues, name=name, **limit)

    def slot(self, queue: str, worker_id: int) -> None:
        self._insert(slots, queue=queue, n=1, worker_id=worker_id)


@pytest.fixture
def rows(connection: sa.Connection) -> Rows:
    return Rows(connection)


def two_ticks(rows: Rows) -> None:
    for _ in range(2):
        rows.open(meta={"schedule": "nightly", "tick": "2026-01-01T00:00:00.000000Z"})


def one_key(rows: Rows) -> None:
    rows.connection.exec_driver_sql("DROP INDEX jobq.jobs_unique")
    for _ in range(2):
        rows.open(unique_key="the same")


def two_in_order(rows: Rows, first: int, second: int) -> None:
    rows.limited("one", fifo=True)
    rows.run(rows.open(queue="one"), begin=first, end=first + 1)
    rows.run(rows.open(queue="one"), begin=second, end=second + 1)


def with_errors(rows: Rows, number: int, **values: Any) -> None:
    error = {"attempt": 1, "message": "no"}
    rows.ended(1, state="dead", errors=[error] * number, **values)


def outcome(rows: Rows, of_attempt: int) -> None:
    run = rows.run(1, of_attempt)
    rows.ended(1, attempt=1, outcome=f"ok: {run}")


def failure(rows: Rows, of_attempt: int) -> None:
    run = rows.run(1, of_attempt)
    rows.ended(1, attempt=9, errors=[{"attempt": 1, "message": run}])


def twice(rows: Rows, end_of_the_first: int, pid: int = 1) -> None:
    job = rows.running()
    rows.run(job, 1, begin=0, end=end_of_the_first, pid=pid)
    rows.run(job, 2, begin=5, end=9)


Breaking = Callable[[Rows], Any]
Check = Callable[[sa.Connection], Any]


def at_once(rows: Rows, second_begins: int) -> None:
    rows.limited("few", concurrency=1)
    rows.run(rows.open(queue="few"), begin=0, end=5)
    rows.run(rows.open(queue="few"), begin=second_begins, end=9)


def orphans(connection: sa.Connection) -> Any:
    return guarantees.orphans(connection)


def halves(connection: sa.Connection) -> Any:
    return guarantees.halves(connection, "k")


CASES: dict[str, tuple[Check, Breaking, Breaking]] = {  # the check, what is right, what is wrong
    "G1 lost": (lambda c: guarantees.lost(c, [1]), lambda r: r.ended(1), lambda r: r.ended(2)),
    "G2 row": (lambda c: guarantees.ghosts(c, [1]), lambda r: r.ended(2), lambda r: r.ended(1)),
    "G2 run": (lambda c: guarantees.ghosts(c, [1]), lambda r: r.run(2), lambda r: r.run(1)),
    "G3 both": (guarantees.ended_and_open, lambda r: r.open(id=1), lambda r: r.ended(r.open(id=1))),
    "G4 outcome": (guarantees.stale_ends, lambda r: outcome(r, 1), lambda r: outcome(r, 2)),
    "G4 failure": (guarantees.stale_ends, lambda r: failure(r, 1), lambda r: failure(r, 2)),
    "G4 passed": (guarantees.stale_ends, lambda r: r.run(r.ended(1)), lambda r: r.run(r.ended(1), 2)),
    "G5": (guarantees.overlaps, lambda r: twice(r, 4), lambda r: twice(r, 6)),
    "G6 claim": (guarantees.early, lambda r: r.running(), lambda r: r.running(run_at=NOW + DAY)),
    "G6 begin": (
        lambda c: guarantees.early(c, EFFECTS),
        lambda r: r.run(r.running(), begin=0),
        lambda r: r.run(r.running(), begin=-1),
    ),
    "G7 too many": (
        guarantees.too_many_failures,
        lambda r: with_errors(r, 2, failures=2, max_attempts=2),
        lambda r: with_errors(r, 3, failures=3, max_attempts=2),
    ),
    "G7 open": (guarantees.too_many_failures, lambda r: r.open(failures=4), lambda r: r.open(failures=5)),
    "G7 errors": (
        guarantees.too_many_failures,
        lambda r: with_errors(r, 2, failures=2),
        lambda r: with_errors(r, 1, failures=2),
    ),
    "G8": (guarantees.shared_keys, lambda r: r.open(unique_key="one"), one_key),
    "G9 running": (
        guarantees.over_the_limit,
        lambda r: (r.limited("few", concurrency=2), r.running(queue="few"), r.running(queue="few")),
        lambda r: (r.limited("few", fifo=True), r.running(queue="few"), r.running(queue="few")),
    ),
    "G9 at once": (guarantees.ran_over_the_limit, lambda r: at_once(r, 5), lambda r: at_once(r, 4)),
    "G9 order": (guarantees.out_of_order, lambda r: two_in_order(r, 1, 3), lambda r: two_in_order(r, 3, 1)),
    "G10": (guarantees.ticks_twice, lambda r: r.open(meta={"schedule": "nightly"}), two_ticks),
    "G11 job": (orphans, lambda r: r.running(), lambda r: r.running(worker_id=GONE)),
    "G11 slot": (orphans, lambda r: r.slot("few", LIVE), lambda r: r.slot("few", GONE)),
    "G13 work alone": (halves, lambda r: r.booked(r.ended(1)), lambda r: r.booked(1)),
    "G13 end alone": (halves, lambda r: r.booked(r.ended(1)), lambda r: r.ended(1)),
    "G13 twice": (halves, lambda r: r.booked(r.ended(1)), lambda r: (r.booked(r.ended(1)), r.booked(1))),
}


@pytest.mark.parametrize("case", CASES)
def test_a_check_reports_what_is_wrong_and_nothing_else(rows: Rows, case: str) -> None:
    check, right, wrong = CASES[case]
    savepoint = rows.connection.begin_nested()
    right(rows)

    before = check(rows.connection)
    savepoint.rollback()
    wrong(rows)

    assert before == []
    assert {each.guarantee for each in check(rows.connection)} == {case.split()[0]}


def test_a_run_that_was_cut_off_excuses_the_next(rows: Rows) -> None:
    twice(rows, 6, pid=66)

    assert guarantees.overlaps(rows.connection)
    assert guarantees.overlaps(rows.connection, excused=[66]) == []


def test_what_must_hold_at_any_time_holds_in_a_database_without_jobs(rows: Rows) -> None:
    assert guarantees.at_any_time(rows.connection) == []


@pytest.fixture
def journal(engine: sa.Engine) -> sa.Engine:
    with engine.begin() as connection:
        keep_journal(connection)
    return engine


def test_the_journal_takes_the_repairs_of_an_operator_for_right(journal: sa.Engine) -> None:
    app = jobq.App()
    handler = app.handler("k")(lambda: None)
    steps: list[Callable[[sa.Connection, int], Any]] = [
        jobq.cancel,
        jobq.retry,
        jobq.cancel,
        lambda connection, _: connection.execute(sa.update(finished_jobs).values(expires_at=NOW)),
        lambda connection, _: connection.execute(sa.delete(finished_jobs)),
    ]
    with journal.begin() as connection:
        job = jobq.enqueue(connection, handler).id

    for step in steps:
        with journal.begin() as connection:
            step(connection, job)

    with journal.begin() as connection:
        assert guarantees.by_the_journal(connection, by_hand=[job]) == []
        assert {each.what for each in guarantees.by_the_journal(connection)} == {
            "one attempt has ended twice",
            "opened again, by nobody's hand",
        }


@pytest.mark.parametrize(
    ("wrong", "guarantee"),
    [("DELETE FROM jobq.jobs", "G1"), ("DELETE FROM jobq.finished_jobs", "G12")],
    ids=["a job is lost", "an ended job is deleted early"],
)
def test_the_journal_shows_what_is_gone(journal: sa.Engine, wrong: str, guarantee: str) -> None:
    with journal.begin() as connection:
        connection.execute(sa.insert(jobs).values(kind="k"))
        jobq.cancel(connection, connection.execute(sa.insert(jobs).values(kind="k").returning(jobs.c.id)).scalar_one())

    with journal.begin() as connection:
        connection.exec_driver_sql(wrong)

    with journal.begin() as connection:
        assert {each.guarantee for each in guarantees.by_the_journal(connection)} == {guarantee}
