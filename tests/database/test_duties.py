"""What a role with one duty may not do; that it may do its own is shown by the tests that are marked with a duty."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from roles_of_tests import as_role
from sqlalchemy.exc import ProgrammingError

import jobq
from jobq.grants import grants, quoted
from jobq.tables import finished_jobs, jobs, kinds, leader, metadata, queues, schedules, slots, sums, workers

DENIED = "permission denied"
app = jobq.App()


@app.handler("email.send", queue="email")
def send(to: str) -> None: ...


def changes_of(table: sa.Table) -> list[sa.Executable]:
    nothing = dict.fromkeys(table.c.keys())
    return [sa.insert(table).values(nothing), sa.update(table).values(nothing), sa.delete(table)]


FORBIDDEN: dict[str, list[sa.Executable]] = {
    "enqueue": [
        sa.select(jobs.c.args),
        sa.select(jobs.c.meta),
        sa.select(jobs.c.errors),
        sa.select(finished_jobs.c.id),
        sa.select(jobq.tables.all_jobs.c.id),
        sa.select(workers.c.id),
        sa.update(jobs).values(worker_id=7, attempt=jobs.c.attempt + 1),
        sa.update(jobs).values(failures=0),
        sa.insert(jobs).values(kind="k", worker_id=7),
        sa.insert(jobs).values(kind="k", failures=3),
        sa.insert(kinds).values(kind="k", queue="q", max_attempts=1),
        sa.delete(jobs),
        *[each for table in (finished_jobs, workers, slots, queues, schedules, leader) for each in changes_of(table)],
    ],
    "operate": [
        sa.update(jobs).values(worker_id=7),
        sa.update(jobs).values(args={}),
        sa.update(finished_jobs).values(state="done"),
        *[each for table in (workers, kinds, schedules, leader, sums) for each in changes_of(table)],
    ],
    "read": [each for table in metadata.sorted_tables for each in changes_of(table)],
    "work": [sa.delete(table) for table in (queues, kinds, schedules, leader)],
}
CASES = [
    pytest.param(duty, each, id=f"{duty}-{n}-{type(each).__name__}")
    for duty, forbidden in FORBIDDEN.items()
    for n, each in enumerate(forbidden)
]


@pytest.mark.parametrize(("role", "statement"), CASES)
def test_a_duty_gives_no_other_right(connection: sa.Connection, role: str, statement: Any) -> None:
    with pytest.raises(ProgrammingError, match=DENIED), as_role(connection, role):
        connection.execute(statement)


@pytest.mark.parametrize("role", ["enqueue", "operate", "read", "work"])
@pytest.mark.parametrize("what", ["TRUNCATE jobq.jobs", "DROP TABLE jobq.jobs", "CREATE TABLE jobq.x (n int)"])
def test_nobody_but_the_owner_changes_tables(connection: sa.Connection, role: str, what: str) -> None:
    with pytest.raises(ProgrammingError, match=f"{DENIED}|must be owner"), as_role(connection, role):
        connection.exec_driver_sql(what)


def test_whoever_enqueues_may_do_it_in_sql_and_by_a_select_of_its_own(connection: sa.Connection) -> None:
    customers = sa.table("customers", sa.column("email", sa.Text))
    with as_role(connection, "enqueue"):
        connection.exec_driver_sql("CREATE TEMPORARY TABLE customers (email text)")
        connection.exec_driver_sql("INSERT INTO customers VALUES ('a@b'), ('c@d')")
        number = jobq.enqueue_select(connection, send, sa.select(customers.c.email.label("to")))
        connection.exec_driver_sql("""SELECT jobq.enqueue('email.send', '{"to": "e@f"}', unique_key => 'once')""")
        same = connection.exec_driver_sql("SELECT jobq.enqueue('email.send', '{}', unique_key => 'once')").scalar()

    rows = connection.execute(sa.select(jobs.c.id, jobs.c.unique_key)).all()
    assert len(rows) == 3
    assert [id_ for id_, key in rows if key == "once"] == [same]
    assert number


def test_the_grants_of_a_role_with_a_hostile_name_are_its_own(connection: sa.Connection) -> None:
    hostile = 'r"; DROP TABLE jobq.jobs; -- \\ % é'
    cursor = connection.connection.cursor()
    cursor.execute(f"CREATE ROLE {quoted(hostile)}")
    for grant in grants([(hostile, "enqueue")]):
        cursor.execute(grant.sql)

    may_use = sa.select(sa.func.has_schema_privilege(hostile, "jobq", "USAGE"))
    may_insert = sa.select(sa.func.has_table_privilege(hostile, "jobq.kinds", "INSERT"))
    assert (connection.scalar(may_use), connection.scalar(may_insert)) == (True, False)
    assert connection.execute(sa.select(sa.func.count()).select_from(jobs)).scalar() == 0
