"""The PostgreSQL of a test run: one server that all processes of the run share, and databases on it.

`database_url` is a migrated database of the test's own. `connection` and `session` are cheaper: they share one
database and are rolled back, so they are for tests that commit nothing and need no second connection.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql
from roles_of_tests import make_roles, parametrize, url_of
from sqlalchemy.orm import Session

from jobq import embedded
from jobq.embedded.locks import exclusive

DIRECTORY = "JOBQ_TEST_DIRECTORY"  # how the process that a run starts in tells the others where the server is
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 2 << 30  # what it must have free: files there are made ten times faster than on a busy disk
TEMPLATE = "jobq_template"
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_wal_size": "256MB",
    "max_connections": "300",
    "max_prepared_transactions": "20",  # for two-phase sessions
    "timezone": "UTC",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pooler", action="store_true", help="tests/worker: workers reach the server through PgBouncer")


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts background jobs with SIGINT ignored, and the processes that tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Hundreds of processes are started here: where Python may not keep what it compiled, each compiles all of jobq.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if not hasattr(config, "workerinput"):  # that is a process which xdist started
        os.environ[DIRECTORY] = tempfile.mkdtemp(prefix="jobq-tests-", dir=_fast_folder())


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        embedded.stop(os.environ[DIRECTORY])
        shutil.rmtree(os.environ[DIRECTORY])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What the chaos tests counted (kills, rescues, refused writes ...), which pytest shows of failed tests alone."""
    folders = ("tests/chaos/", "tests/attack/")
    passed = [report for report in terminalreporter.stats.get("passed", []) if report.nodeid.startswith(folders)]
    if counted := [report for report in passed if report.capstdout.strip()]:
        terminalreporter.section("what the chaos tests counted")
    for report in counted:
        name = report.nodeid.partition("::")[2].removeprefix("test_").replace("_", " ")
        terminalreporter.write_line(f"{name}: {' '.join(report.capstdout.split())}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Of several processes one runs the chaos tests, one after the other; all other tests go wherever there is room.

    The tests in a file of attacks come one after the other, too.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ChaosApart(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith("tests/attack/"):
                return nodeid.partition("::")[0]
            return "chaos" if nodeid.startswith("tests/chaos/") else nodeid

    return ChaosApart(config, log)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def server_url() -> str:
    """The superuser's URL of the server of this run: TCP with a password, so that any driver can use it."""
    return embedded.ensure(os.environ[DIRECTORY], tcp=True, settings=SETTINGS)


@pytest.fixture
def own_directory() -> Iterator[Path]:
    """A folder for a server of the test's own (`embedded.ensure`), which is stopped and removed at the end."""
    directory = Path(tempfile.mkdtemp(prefix="jobq-test-", dir=_fast_folder()))
    directory.chmod(0o711)  # for root another account runs the server
    yield directory
    embedded.stop(directory)
    shutil.rmtree(directory, ignore_errors=True)  # a test may have removed it


@pytest.fixture
def mypy_cache() -> Iterator[Path]:
    """mypy's cache of this run, for one test at a time: without it each of them would read all of SQLAlchemy."""
    folder = Path(os.environ[DIRECTORY], "mypy")
    with exclusive(folder.with_suffix(".lock")):
        yield folder


@pytest.fixture(scope="session")
def admin(server_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server_url.replace("+psycopg", ""), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def template(server_url: str, admin: psycopg.Connection) -> str:
    """The name of a migrated database to clone; nobody may be connected to it."""
    with exclusive(Path(os.environ[DIRECTORY], "template.lock")):
        if admin.execute("SELECT FROM pg_database WHERE datname = %s", [TEMPLATE]).fetchone() is None:
            _make_logins_cheap(server_url, admin)
            _make_template(server_url, admin)
    return TEMPLATE


@pytest.fixture
def duty(request: pytest.FixtureRequest) -> str | None:
    """What jobq's role in this database is for, in tests that are marked so; None: it is the owner's."""
    return getattr(request, "param", None)


@pytest.fixture
def owner_url(server_url: str, admin: psycopg.Connection, template: str) -> Iterator[str]:
    """A migrated database of the test's own, for the test's own hand in it."""
    with _database(server_url, admin, template) as url:
        yield url


@pytest.fixture
def database_url(owner_url: str, duty: str | None) -> str:
    """A migrated database of the test's own; it may commit and connect as it likes."""
    return url_of(owner_url, duty)


@pytest.fixture
def empty_database_url(server_url: str, admin: psycopg.Connection) -> Iterator[str]:
    """A database of the test's own, without the tables of jobq."""
    with _database(server_url, admin, "template0") as url:
        yield url


@pytest.fixture
def engine(owner_url: str) -> Iterator[sa.Engine]:
    with _engine(owner_url) as engine:
        yield engine


@pytest.fixture(scope="session")
def shared_database_url(server_url: str, admin: psycopg.Connection, template: str) -> Iterator[str]:
    """A migrated database that the tests of this process share: whoever uses it rolls back."""
    with _database(server_url, admin, template) as url:
        yield url


@pytest.fixture(scope="session")
def shared_engine(shared_database_url: str) -> Iterator[sa.Engine]:
    with _engine(shared_database_url) as engine:
        yield engine


@pytest.fixture
def connection(shared_engine: sa.Engine) -> Iterator[sa.Connection]:
    """In a transaction that is rolled back; not to be committed by the test."""
    with shared_engine.connect() as connection:
        transaction = connection.begin()
        yield connection
        transaction.rollback()


@pytest.fixture
def session(connection: sa.Connection) -> Iterator[Session]:
    """On `connection`; may commit and roll back, which ends savepoints only."""
    with Session(connection, join_transaction_mode="create_savepoint") as session:
        yield session


def _make_logins_cheap(server_url: str, admin: psycopg.Connection) -> None:
    """A run connects many thousand times, and to hash a password 4096 times is more than half of what that takes.

    Passwords are still asked for and compared; in clear, as pg8000 accepts no SCRAM of fewer rounds.
    """
    if admin.info.server_version < 160000:  # there the number is fixed
        return
    ((file,),) = admin.execute("SHOW hba_file").fetchall()
    Path(file).write_text(Path(file).read_text().replace("scram-sha-256", "password"))
    admin.execute("SELECT pg_reload_conf()")
    url = sa.make_url(server_url)
    who, password = sql.Identifier(str(url.username)), sql.Literal(url.password)
    admin.execute("SET scram_iterations = 1")
    admin.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(who, password))


def _make_template(server_url: str, admin: psycopg.Connection) -> None:
    from jobq.schema import migrate

    unfinished = sql.Identifier(f"{TEMPLATE}_new")
    admin.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(unfinished))
    admin.execute(sql.SQL("CREATE DATABASE {}").format(unfinished))
    new = _url(server_url, f"{TEMPLATE}_new")
    migrate(new)
    with psycopg.connect(new.replace("+psycopg", ""), autocommit=True) as connection:
        make_roles(connection)
    admin.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(unfinished, sql.Identifier(TEMPLATE)))


@contextmanager
def _database(server_url: str, admin: psycopg.Connection, template: str) -> Iterator[str]:
    """A database cloned from `template`; FILE_COPY takes two thirds of the time of WAL_LOG where fsync is off."""
    name = f"test_{uuid4().hex[:16]}"
    names = sql.Identifier(name), sql.Identifier(template)
    admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(*names))
    yield _url(server_url, name)
    admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(names[0]))


@contextmanager
def _engine(url: str) -> Iterator[sa.Engine]:
    engine = sa.create_engine(url)
    yield engine
    engine.dispose()


def _url(server_url: str, database: str) -> str:
    return sa.make_url(server_url).set(database=database).render_as_string(hide_password=False)


def _fast_folder() -> str | None:
    """A folder in memory, None for the usual temporary one where memory is scarce."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES:
        return str(MEMORY)
    return None
