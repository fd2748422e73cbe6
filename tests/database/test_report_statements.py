"""What handlers report, written: merged and fenced, many jobs in one statement."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa
from store_rows import ME, OTHER, add_running, in_thread, row

from jobq.model import State
from jobq.store.ending import Ending, Fence, finish
from jobq.store.putting_back import put_back
from jobq.store.reporting import report
from jobq.tables import jobs

waiting_or_not = pytest.mark.parametrize("waits", [True, False], ids=["waits", "passes by"])


@waiting_or_not
def test_patches_of_many_attempts_are_merged_in_one_call(connection: sa.Connection, waits: bool) -> None:
    first = add_running(connection, attempt=7, meta={"timeout": 5, "progress": {"fraction": 0.1}})
    second = add_running(connection, attempt=2)
    patches = {second: '{"checkpoint": {"page": 1}}', first: '{"progress": {"fraction": 0.2}}'}

    assert report(connection, patches, waits=waits) == ({first, second}, set())
    assert row(connection, first.id)["meta"] == {"timeout": 5, "progress": {"fraction": 0.2}}
    assert row(connection, second.id)["meta"] == {"checkpoint": {"page": 1}}


@waiting_or_not
def test_f25_each_part_of_the_fence_refuses_a_stale_attempt(connection: sa.Connection, waits: bool) -> None:
    mine = add_running(connection, attempt=3)
    gone_on, elsewhere, back = (add_running(connection, attempt=3) for _ in range(3))
    connection.execute(sa.update(jobs).where(jobs.c.id == gone_on.id).values(attempt=4))
    connection.execute(sa.update(jobs).where(jobs.c.id == elsewhere.id).values(worker_id=OTHER))
    put_back(connection, Ending(back, State.PENDING))
    never = Fence(10**9, 1, ME)
    all_of_them = [mine, gone_on, elsewhere, back, never]

    written, lost = report(connection, dict.fromkeys(all_of_them, '{"a": 1}'), waits=waits)

    assert (written, lost) == ({mine}, {gone_on, elsewhere, back, never})
    assert [row(connection, each.id)["meta"] for each in all_of_them[:-1]] == [{"a": 1}, {}, {}, {}]


def test_of_two_attempts_of_a_job_in_one_batch_the_later_counts(connection: sa.Connection) -> None:
    later = add_running(connection, attempt=2)
    stale = replace(later, attempt=1)

    report(connection, {later: '{"from": "later"}', stale: '{"from": "stale"}'}, waits=False)

    assert row(connection, later.id)["meta"] == {"from": "later"}


def test_only_what_the_attempt_has_completed_itself_is_written_after_its_end(connection: sa.Connection) -> None:
    done, dead = add_running(connection), add_running(connection)
    finish(connection, [Ending(done, State.DONE), Ending(dead, State.DEAD)])

    assert report(connection, {done: '{"a": 1}', dead: '{"a": 1}'}, waits=True) == ({done}, {dead})
    assert (row(connection, done.id)["meta"], row(connection, dead.id)["meta"]) == ({"a": 1}, {})


def test_a_locked_row_is_passed_by_and_is_not_taken_for_lost(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        locked, free = add_running(connection), add_running(connection)
    lock = sa.select(jobs.c.id).where(jobs.c.id == locked.id).with_for_update()

    with engine.connect() as holder, engine.connect() as reporter:
        holder.execute(lock)
        assert report(reporter, {locked: '{"a": 1}', free: '{"a": 1}'}, waits=False) == ({free}, set())
        reporter.commit()
        with in_thread(engine, lambda c: report(c, {locked: '{"a": 2}'}, waits=True)) as before_an_end:
            holder.rollback()
        assert before_an_end.result() == ({locked}, set())


def test_a_report_leaves_the_indexes_alone(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        fences = [add_running(connection) for _ in range(200)]
    counters = "SELECT pg_stat_get_xact_tuples_updated(oid) AS updated, pg_stat_get_xact_tuples_hot_updated(oid) AS hot"
    with engine.begin() as connection:
        report(connection, dict.fromkeys(fences, '{"progress": {"fraction": 0.5}}'), waits=False)
        counted = connection.exec_driver_sql(f"{counters} FROM pg_class WHERE oid = 'jobq.jobs'::regclass").one()

    assert counted.updated == 200
    assert counted.hot >= 150  # the rest found no room on their page
