"""Database roles for tests: one for each duty, with what `jobq grants` prints for it and nothing else.

A test, or a file's `pytestmark`, that says `pytest.mark.duty("work")` runs twice: as the owner of the tables, and as
that role. jobq then connects as the role, the test's own hand stays the owner's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg.pq import TransactionStatus

from jobq.grants import Duty, grants

PASSWORD = "of a role"


def name_of(duty: str) -> str:
    return f"jobq_test_{duty}"


def make_roles(connection: psycopg.Connection[Any]) -> None:
    """In a migrated database, of which others are cloned."""
    for duty in Duty:
        connection.execute(f"CREATE ROLE {name_of(duty)} LOGIN PASSWORD '{PASSWORD}'")
    for grant in grants((name_of(duty), duty) for duty in Duty):
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


def switching(function: Callable[..., Any], duty: str) -> Callable[..., Any]:
    """A function of the store, (connection, ...), whose statements are sent by the role of this duty."""

    def switched(connection: sa.Connection, *args: Any, **kwargs: Any) -> Any:
        with as_role(connection, duty):
            return function(connection, *args, **kwargs)

    return switched


@contextmanager
def as_role(connection: sa.Connection, duty: str) -> Iterator[None]:
    """By the driver's own cursor: for SQLAlchemy, and tests that count, nothing is sent."""
    _send(connection, f"SET LOCAL ROLE {name_of(duty)}")
    try:
        yield
    finally:
        if _status(connection) is TransactionStatus.INTRANS:  # where it has failed, the rollback ends the role
            _send(connection, "RESET ROLE")


def _status(connection: sa.Connection) -> TransactionStatus:
    driver: Any = connection.connection.driver_connection
    status: TransactionStatus = driver.info.transaction_status
    return status


def _send(connection: sa.Connection, sql: str) -> None:
    with connection.connection.cursor() as cursor:
        cursor.execute(sql)
