"""Processes and threads that migrate one database at the same moment, and what they do to its other sessions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

import pytest
import sqlalchemy as sa

from jobq.errors import SchemaError
from jobq.schema import Migrated, migrate

PROMPT = timedelta(milliseconds=20)

MIGRATE_WHEN_TOLD = """
import sys
from jobq import urls
from jobq.schema import migrate

url = urls.from_environment()
print("ready", flush=True)
sys.stdin.readline()
print(migrate(url).after)
"""

STOP_IN_THE_MIDDLE = """
import sys
import sqlalchemy as sa
from jobq import urls
from jobq.schema import migrate


@sa.event.listens_for(sa.Engine, "after_cursor_execute")
def stop(connection, cursor, statement, *rest):
    if "CREATE TABLE jobq.workers" in statement:
        print("ready", flush=True)
        sys.stdin.readline()


migrate(urls.from_environment())
"""


@contextmanager
def processes(code: str, url: str, *, count: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Python processes that have printed "ready" and wait for a line."""
    environment = {**os.environ, "JOBQ_DATABASE_URL": url}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    started = [subprocess.Popen([sys.executable, "-c", code], **pipes) for _ in range(count)]
    try:
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


@contextmanager
def connected(url: str, **options: object) -> Iterator[sa.Connection]:
    engine = sa.create_engine(url, poolclass=sa.NullPool, **options)
    with engine.connect() as connection:
        yield connection


def versions(url: str) -> list[str]:
    with connected(url) as connection:
        return list(connection.exec_driver_sql("SELECT version_num FROM jobq.schema_version").scalars())


def schemas_with_tables(url: str) -> set[str]:
    with connected(url) as connection:
        names = connection.exec_driver_sql("SELECT DISTINCT relnamespace::regnamespace::text FROM pg_class")
        return {name for name in names.scalars() if not name.startswith(("pg_", "information_schema"))}


def test_f54_eight_processes_migrate_at_once(empty_database_url: str) -> None:
    with processes(MIGRATE_WHEN_TOLD, empty_database_url, count=8) as migrating:
        for process in migrating:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        said = [process.communicate()[0] for process in migrating]

    assert said == ["0001\n"] * 8
    assert [process.returncode for process in migrating] == [0] * 8
    assert versions(empty_database_url) == ["0001"]


def test_f54_threads_of_one_process_migrate_at_once(empty_database_url: str) -> None:
    engine = sa.create_engine(empty_database_url, poolclass=sa.NullPool)
    with ThreadPoolExecutor(4) as pool:
        assert {migrated.after for migrated in pool.map(migrate, [engine] * 4)} == {"0001"}


def test_f54_a_process_killed_in_the_middle_leaves_nothing(empty_database_url: str) -> None:
    with processes(STOP_IN_THE_MIDDLE, empty_database_url, count=1) as [killed]:
        killed.kill()
        killed.wait()
        assert migrate(empty_database_url) == Migrated(before=None, after="0001")

    assert versions(empty_database_url) == ["0001"]


def test_f54_the_wait_for_another_process_ends(empty_database_url: str, caplog: pytest.LogCaptureFixture) -> None:
    with connected(empty_database_url) as other:
        other.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtextextended('jobq migrations of jobq', 0))")
        with pytest.raises(SchemaError, match=r"nothing is changed: another process was at it and not done after 0:00"):
            migrate(empty_database_url, wait=PROMPT)

    assert "another process is migrating schema jobq: waiting for it" in caplog.text
    assert schemas_with_tables(empty_database_url) == set()


def test_migrate_never_waits_long_behind_the_locks_of_others(empty_database_url: str) -> None:
    with connected(empty_database_url) as other:
        other.exec_driver_sql("CREATE SCHEMA jobq")  # not committed
        with pytest.raises(SchemaError, match="nothing is changed: other sessions held a lock") as refused:
            migrate(empty_database_url, lock_timeout=PROMPT, wait=PROMPT)

    assert refused.value.needed == "0001"
    assert migrate(empty_database_url).before is None
