"""What several tests of this folder look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from limited_rows import prepare
from roles_of_tests import Acting, public_functions, switching
from sqlalchemy import event

from jobq.grants import Duty
from jobq.store import inserting
from jobq_cli.app import run


@pytest.fixture(autouse=True)
def by_role(duty: str | None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In tests that are marked so, whatever enqueues, looks or operates does it with the rights of the duty alone."""
    if duty is None or {"rows", "empty_database_url"} & set(request.fixturenames):
        return  # commands connect as the role, or make tables of their own
    monkeypatch.setattr(Acting, "duty", duty)
    if duty in (Duty.READ, Duty.OPERATE):
        for module, name in public_functions(duty):
            monkeypatch.setattr(module, name, switching(getattr(module, name), duty))
    if duty == Duty.ENQUEUE:
        for name in ("insert", "insert_many", "insert_select"):
            monkeypatch.setattr(inserting, name, switching(getattr(inserting, name), duty))


@pytest.fixture
def sent(shared_engine: sa.Engine) -> Iterator[list[str]]:
    """The SQL that is sent to the shared database meanwhile."""
    texts: list[str] = []

    def note(connection: Any, cursor: Any, sql: str, *_: Any) -> None:
        texts.append(sql)

    event.listen(shared_engine, "before_cursor_execute", note)
    yield texts
    event.remove(shared_engine, "before_cursor_execute", note)


@pytest.fixture
def rows(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch, database_url: str) -> Iterator[sa.Connection]:
    """A connection that commits each statement, to the database that commands work on."""
    monkeypatch.setenv("JOBQ_DATABASE_URL", database_url)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection


@pytest.fixture
def both_workers(request: pytest.FixtureRequest) -> None:
    """The rows of ME and OTHER; in a test of several connections whoever needs them makes them."""
    if "engine" not in request.fixturenames:
        prepare(request.getfixturevalue("connection"))


@pytest.fixture
def jobq(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command line: exit code, stdout, stderr."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([str(each) for each in arguments])
        return code, *capsys.readouterr()

    return call
