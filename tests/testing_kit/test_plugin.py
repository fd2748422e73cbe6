"""The pytest plugin, as an application's tests use it: in a pytest of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

APP = """
import jobq
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

app = jobq.App()

class Base(DeclarativeBase): ...

class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[str] = mapped_column(default="new")

@app.handler("pay")
def pay(order_id: int) -> None:
    with jobq.current().transaction() as session:
        session.get_one(Order, order_id).state = "paid"

@app.handler("ship")
async def ship(order_id: int) -> None:
    async with jobq.current().transaction() as session:
        (await session.get_one(Order, order_id)).state = "shipped"

def take(session: Session) -> Order:
    session.add(order := Order())
    jobq.enqueue(session, pay, order_id=jobq.pk(order))
    session.commit()
    return order

async def take_async(session: AsyncSession) -> Order:
    session.add(order := Order())
    await session.flush()
    await jobq.enqueue_async(session, ship, order_id=order.id)
    await session.commit()
    return order
"""
CONFTEST = """
import pytest, shop

@pytest.fixture(scope="session")
def jobq_metadata():
    return shop.Base.metadata

@pytest.fixture(autouse=True)
def noted(jobq_server, jobq_template, jobq_shared_engine):
    with open("made.txt", "a") as made, open("folders.txt", "a") as folders:
        made.write(f"{jobq_template} {jobq_shared_engine.url.database}\\n")
        folders.write(f"{jobq_server.folder}\\n")
"""
MIGRATE = """
import jobq, sqlalchemy as sa

@pytest.fixture(scope="session")
def jobq_migrate():
    def make_tables(url):
        with open("migrated.txt", "a") as file:
            file.write("once")
        jobq.migrate(url)
        shop.Base.metadata.create_all(sa.create_engine(url, poolclass=sa.NullPool))
    return make_tables
"""
TESTS = """
import os
import jobq, pytest, sqlalchemy as sa
from jobq.testing import assert_enqueued, assert_enqueued_async, drain, drain_async, enqueued
from shop import Order, app, pay, ship, take, take_async

@pytest.mark.parametrize("n", range(3))
def test_an_order_is_paid(jobq_session, n):
    assert enqueued(jobq_session) == []  # nothing of another test
    order = take(jobq_session)
    assert_enqueued(jobq_session, pay, order_id=order.id)
    drain(app, jobq_session)
    jobq_session.commit()
    jobq_session.rollback()
    assert order.state == "paid"

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
async def test_an_order_is_shipped(jobq_async_session, jobq_session):
    order = await take_async(jobq_async_session)
    await assert_enqueued_async(jobq_async_session, ship, order_id=order.id)
    assert enqueued(jobq_session) == []  # another transaction
    await drain_async(app, jobq_async_session)
    await jobq_async_session.refresh(order)
    assert order.state == "shipped"

@pytest.mark.parametrize("n", range(2))
def test_a_database_of_its_own(jobq_engine, jobq_database_url, jobq_server_url, n):
    assert jobq_engine.url == sa.make_url(jobq_database_url) != sa.make_url(jobq_server_url)
    with sa.orm.Session(jobq_engine) as session:
        assert session.scalar(sa.select(sa.func.count()).select_from(Order)) == 0
        take(session)
    with sa.create_engine(jobq_database_url, poolclass=sa.NullPool).connect() as other:
        assert other.scalar(sa.select(sa.func.count()).select_from(Order)) == 1
"""


@pytest.fixture
def application(tmp_path: Path) -> Path:
    """A small application with tests, in a folder of its own."""
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['.']\n")
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_shop.py").write_text(TESTS)
    return tmp_path


def run_tests(folder: Path, *arguments: str, url: str | None = None) -> str:
    """What pytest prints; all of them must pass."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JOBQ_TEST", "PYTEST"))}
    environment |= {"JOBQ_TEST_DATABASE_URL": url} if url else {}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    command += [] if _is_installed() else ["-p", "jobq.pytest_plugin"]
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def _is_installed() -> bool:
    """Whether the entry point is known: an editable installation from before it knows nothing of it."""
    from importlib.metadata import entry_points

    return any(point.value == "jobq.pytest_plugin" for point in entry_points(group="pytest11"))


def left_of(folder: Path, url: str) -> set[str]:
    """Which of the run's databases are still there."""
    made = set((folder / "made.txt").read_text().split())
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        rows = connection.execute("SELECT datname FROM pg_database").fetchall()
    assert made
    return made & {name for (name,) in rows}


def test_an_applications_tests_use_the_fixtures_as_they_stand(application: Path, server_url: str) -> None:
    assert "6 passed" in run_tests(application, "-W", "error", url=server_url)
    assert left_of(application, server_url) == set()


@pytest.mark.slow
def test_processes_of_xdist_share_a_template_that_the_applications_own_function_has_made(
    application: Path, server_url: str
) -> None:
    (application / "conftest.py").write_text(CONFTEST + MIGRATE)

    assert "6 passed" in run_tests(application, "-n", "2", url=server_url)
    assert (application / "migrated.txt").read_text() == "once"
    assert left_of(application, server_url) == set()


@pytest.mark.slow
def test_without_a_url_a_server_of_the_runs_own_is_started_and_gone_afterwards(application: Path) -> None:
    assert "6 passed" in run_tests(application, "-n", "2")

    (folder,) = set((application / "folders.txt").read_text().split())
    assert not Path(folder).exists()


def test_the_plugin_loads_nothing_heavy() -> None:
    program = (
        "import pytest, sys, json\nbefore = set(sys.modules)\nimport jobq.pytest_plugin\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    loaded = {name for name in json.loads(done.stdout) if not name.startswith("_")}
    assert {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names} == {
        "jobq",
        "jobq.pytest_plugin",
    }
