"""Database roles for tests: one for each duty, with what `jobq grants` prints for it and nothing else.

jobq then connects as the role, the test's own hand stays the owner's. The tests of `tests/worker` have the role that
works. A test elsewhere, or a file's `pytestmark`, that says `pytest.mark.duty("read")` runs twice: as the owner of the
tables, and as that role.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg.pq import TransactionStatus
from sqlalchemy.orm import Session, scoped_session

import jobq
from jobq.grants import Duty, grants
from jobq.tables import SCHEMA

PASSWORD = "of-a-role"
OPERATING = {"cancel", "retry", "pause", "resume", "set_queue", "run_schedule"}


def name_of(duty: str) -> str:
    return f"jobq_test_{duty}"


def make_roles(connection: psycopg.Connection[Any]) -> None:
    """In a migrated database, of which others are cloned."""
    for duty in Duty:
        connection.execute(f"CREATE ROLE {name_of(duty)} LOGIN PASSWORD '{PASSWORD}'")
    give_rights(connection)
    names = ", ".join(map(name_of, Duty))
    for what in ("TABLES", "SEQUENCES"):  # an application's own, which tests make
        connection.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON {what} TO {names}")


def give_rights(connection: psycopg.Connection[Any], schema: str = SCHEMA) -> None:
    for grant in grants(((name_of(duty), duty) for duty in Duty), schema=schema):
        connection.execute(grant.sql)


def url_of(url: str, duty: str | None) -> str:
    """The same database, as the role of this duty sees it; an enqueue has its caller's connection, see `switching`."""
    if duty in (None, Duty.ENQUEUE):
        return url
    chosen = sa.make_url(url).set(username=name_of(duty), password=PASSWORD)
    return chosen.render_as_string(hide_password=False)


def parametrize(metafunc: pytest.Metafunc) -> None:
    """`duty` is None and what the mark says, where a test is marked and has to do with a database."""
    marks = list(metafunc.definition.iter_markers("duty"))
    if marks and "duty" in metafunc.fixturenames:
        duties = [None, *dict.fromkeys(each for mark in marks for each in mark.args)]
        metafunc.parametrize("duty", duties, ids=["owner", *(f"as_{each}" for each in duties[1:])], indirect=True)


class Acting:
    """The duty of the test that runs; None: the owner. A module that is first imported meanwhile keeps what it got."""

    duty: str | None = None


def switching(function: Callable[..., Any], duty: str) -> Callable[..., Any]:
    """A function, (connection or session, ...), whose statements are sent by the role of this duty, while it acts."""

    def switched(session: Any, *args: Any, **kwargs: Any) -> Any:
        if Acting.duty != duty or not isinstance(session, sa.Connection | Session | scoped_session):
            return function(session, *args, **kwargs)
        with as_role(_connection(session), duty):
            return function(session, *args, **kwargs)

    return switched


def public_functions(duty: str) -> Iterator[tuple[object, str]]:
    """Module and name of each that looks with its caller's session, or operates; once more as `jobq.name`."""
    for name in set(jobq.__all__) - (OPERATING if duty == Duty.READ else set()):
        found = getattr(jobq, name)
        joins = inspect.isfunction(found) and "session" in inspect.signature(found).parameters
        if joins and not name.startswith("enqueue") and not name.endswith("_async"):
            yield from ((sys.modules[found.__module__], name), (jobq, name))


@contextmanager
def as_role(connection: sa.Connection, duty: str) -> Iterator[None]:
    """By the driver's own cursor: for SQLAlchemy, and tests that count, nothing is sent."""
    before = _send(connection, "SELECT quote_ident(current_user)")
    _send(connection, f"SET LOCAL ROLE {name_of(duty)}")
    try:
        yield
    finally:
        if _status(connection) is TransactionStatus.INTRANS:  # where it has failed, the rollback ends the role
            _send(connection, f"SET LOCAL ROLE {before}")


def _connection(session: sa.Connection | Session | scoped_session[Session]) -> sa.Connection:
    """Where a session lives on a connection, that one: to ask the session for it would begin a savepoint."""
    bound = session if isinstance(session, sa.Connection) else session.get_bind()
    return bound if isinstance(bound, sa.Connection) else session.connection()


def _status(connection: sa.Connection) -> TransactionStatus:
    driver: Any = connection.connection.driver_connection
    status: TransactionStatus = driver.info.transaction_status
    return status


def _send(connection: sa.Connection, sql: str) -> str | None:
    """The first value that comes back."""
    with connection.connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0] if cursor.description else None
