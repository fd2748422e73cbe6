"""`jobq migrate` and an application's own history on one database: whoever comes second is told and does nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from history_catalog import WAITING, everything, run, schemas
from history_shop import Shop

from jobq_migrations import turns

ROOT = Path(__file__).parents[2]
JOBS = "SELECT kind FROM jobq.jobs"
NOTHING = "the tables of jobq (schema jobq) are at revision 0001 already: nothing to do for 0001"


@contextmanager
def turn_taken(url: str) -> Iterator[sa.Connection]:
    """Somebody is migrating: a transaction that holds the lock, to be committed by the test."""
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        turns.take_turn(connection, "jobq")
        yield connection


def ended(process: subprocess.Popen[str]) -> str:
    """What else it said, when it has ended well."""
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    return said


@pytest.fixture
def with_jobq(shop: Shop) -> Shop:
    shop.new()
    return shop


def test_a_history_that_comes_second_does_nothing_and_says_so(with_jobq: Shop, database_url: str) -> None:
    run(database_url, WAITING)
    before = everything(database_url)
    said = with_jobq.on(database_url).alembic("upgrade", "head").stderr

    assert said.count(NOTHING) == said.count("nothing to do") == 1
    assert everything(database_url) == before
    assert run(database_url, JOBS) == [("waiting",)]


def test_a_migrate_that_comes_second_says_up_to_date(with_jobq: Shop, empty_database_url: str) -> None:
    with_jobq.alembic("upgrade", "head")
    run(empty_database_url, WAITING)

    assert with_jobq.jobq("migrate").stdout == "the tables are at revision 0001 already\n"
    assert run(empty_database_url, JOBS) == [("waiting",)]


def test_what_migrate_made_goes_with_the_downgrade_and_comes_back(with_jobq: Shop, database_url: str) -> None:
    with_jobq.on(database_url).alembic("upgrade", "head")
    with_jobq.alembic("downgrade", "-1")
    assert schemas(database_url) == set()

    assert with_jobq.jobq("migrate").stdout == "the tables are at revision 0001 now (before: none)\n"
    assert NOTHING in with_jobq.alembic("upgrade", "head").stderr


def test_a_downgrade_finds_the_tables_gone(with_jobq: Shop, empty_database_url: str) -> None:
    with_jobq.alembic("upgrade", "head")
    run(empty_database_url, "DROP SCHEMA jobq CASCADE")

    said = with_jobq.alembic("downgrade", "base").stderr
    assert "the tables of jobq (schema jobq) are not there: nothing to do for base" in said


def test_one_history_serves_databases_with_and_without_the_tables(
    with_jobq: Shop, database_url: str, empty_database_url: str
) -> None:
    for url in (database_url, empty_database_url):
        with_jobq.on(url).alembic("upgrade", "head")

    assert everything(database_url) == everything(empty_database_url)


def test_f54_a_history_waits_for_whoever_migrates(with_jobq: Shop, empty_database_url: str) -> None:
    with_jobq.alembic("upgrade", "s3")
    with turn_taken(empty_database_url) as holder:
        process = with_jobq.start("alembic", "upgrade", "head")
        assert process.stderr is not None
        said = next(line for line in process.stderr if "another process" in line)
        holder.commit()

    assert "another process is migrating schema jobq: waiting for it" in said
    assert NOTHING not in ended(process)
    assert with_jobq.jobq("migrate").stdout == "the tables are at revision 0001 already\n"


def test_f54_migrate_and_the_history_at_once(with_jobq: Shop, empty_database_url: str) -> None:
    with_jobq.alembic("upgrade", "s3")
    with turn_taken(empty_database_url) as holder:
        started = [with_jobq.start("alembic", "upgrade", "head"), with_jobq.start("jobq", "migrate")]
        for process in started:
            assert process.stderr is not None
            assert any("another process" in line for line in process.stderr)
        holder.commit()
    for process in started:
        ended(process)

    assert run(empty_database_url, "SELECT version_num FROM jobq.schema_version") == [("0001",)]


def test_f55_the_check_of_jobq_itself_finds_a_column_dropped_by_hand(
    with_jobq: Shop, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_jobq.alembic("upgrade", "head")
    monkeypatch.setenv("JOBQ_DATABASE_URL", empty_database_url)
    own = Config(toml_file=ROOT / "pyproject.toml")
    command.check(own)

    run(empty_database_url, "ALTER TABLE jobq.jobs DROP COLUMN callsite CASCADE")

    with pytest.raises(CommandError, match=r"New upgrade operations detected.*add_column.*callsite"):
        command.check(own)
    assert "No new upgrade operations" in with_jobq.alembic("check").stdout  # to the application it is none of its own
