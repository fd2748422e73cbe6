"""The built wheel, installed beside an application in an environment of its own: everything that its owner does."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

import pytest
import sqlalchemy as sa
from hatchling.builders.wheel import WheelBuilder
from history_shop import Shop

from jobq.tables import finished_jobs

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 60.0

JOBS = """
from __future__ import annotations

import sqlalchemy as sa

import jobq
from models import Order

app = jobq.App()


@app.handler("receipt.send", queue="email")
async def send_receipt(order_id: int) -> str:
    async with jobq.current().transaction() as session:
        await session.execute(sa.update(Order).where(Order.id == order_id).values(note="receipt sent"))
    return f"order {order_id}"
"""

TAKE_ORDER = """
from __future__ import annotations

import os

import sqlalchemy as sa
from sqlalchemy.orm import Session

import jobq
from models import Customer, Order
from shop_jobs import send_receipt


def take_order(session: Session) -> int:
    order = Order(customer_id=session.scalars(sa.select(Customer.id)).one())
    session.add(order)
    return jobq.enqueue(session, send_receipt, order_id=jobq.pk(order)).id


if __name__ == "__main__":
    with Session(sa.create_engine(os.environ["SHOP_URL"])) as session, session.begin():
        print(take_order(session))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment with the wheel in it; all else is found where the tests have it."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    program = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(program), "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", "--root-user-action=ignore", wheel], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    others = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "others.pth").write_text("\n".join(others))  # of a .pth there, as of our checkout, nothing is read
    return program


@pytest.fixture
def installed(shop: Shop, python: Path) -> Shop:
    """The application, with the wheel."""
    shop.python = str(python)
    for name in ("PYTHONPATH", "MYPYPATH"):
        shop.environment.pop(name, None)
    shop.write("shop_jobs.py", JOBS)
    shop.write("take_order.py", TAKE_ORDER)
    return shop


def test_what_is_imported_is_the_wheels(installed: Shop, python: Path) -> None:
    installed.write(
        "where.py", "import jobq, jobq_cli, jobq_migrations as m\nprint(jobq.__file__, jobq_cli.__file__, m.__file__)"
    )

    files = installed._run("where", fails=False).stdout.split()

    assert all(Path(file).is_relative_to(python.parents[1]) for file in files)


def test_an_application_does_everything_with_the_wheel(installed: Shop, empty_database_url: str) -> None:
    installed.alembic("upgrade", "head")
    revision = installed.new()
    installed.alembic("upgrade", "head")
    check = installed.alembic("check")
    job = int(installed._run("take_order", fails=False).stdout)
    code, said = work_until_done(installed, empty_database_url, job)
    stats = installed.jobq("stats", "--json").stdout
    shown = json.loads(installed.jobq("show", str(job), "--json").stdout)

    assert "jobq_migrations.upgrade(" in revision
    assert "No new upgrade operations detected" in check.stdout + check.stderr
    assert code == 0, said
    assert (shown["state"], shown["callsite"].rpartition(":")[0]) == ("done", "take_order.py")
    assert shown["outcome"].startswith("ok: order ")
    assert "email" in stats
    assert "receipt sent" in notes(empty_database_url)


def test_the_command_is_installed(python: Path) -> None:
    done = subprocess.run([python.parent / "jobq", "--help"], capture_output=True, text=True, check=True)

    assert all(command in done.stdout for command in ("run", "stats", "migrate", "migration"))


def test_mypy_checks_the_application_against_the_wheel(installed: Shop) -> None:
    right = types_of(installed, "take_order.py")
    wrong = installed.write("wrong.py", TAKE_ORDER.replace("order_id=jobq.pk(order)", 'order_id="seven"'))
    found = types_of(installed, wrong.name)

    assert right.returncode == 0, right.stdout + right.stderr
    assert 'incompatible type "str"; expected "int"' in found.stdout
    assert "Found 1 error" in found.stdout


def types_of(shop: Shop, file: str) -> subprocess.CompletedProcess[str]:
    options = ["--strict", "--config-file=", "--cache-dir=.mypy_cache", "--follow-imports=silent"]
    command = [sys.executable, "-m", "mypy", *options, "--python-executable", shop.python, file]
    return subprocess.run(command, cwd=shop.directory, env=shop.environment, capture_output=True, text=True)


def work_until_done(shop: Shop, url: str, job: int) -> tuple[int, str]:
    """Run a worker until the job has ended; its exit code, and what it said."""
    worker = shop.start("jobq", "run", "shop_jobs:app")
    try:
        until_ended(worker, url, job)
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=PATIENCE_SECONDS)
    finally:
        worker.kill()
    return worker.returncode, said


def until_ended(worker: subprocess.Popen[str], url: str, job: int) -> None:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    deadline = time.monotonic() + PATIENCE_SECONDS
    ended = sa.select(finished_jobs.c.id).where(finished_jobs.c.id == job)
    while True:
        with engine.connect() as connection:
            if connection.scalar(ended) is not None:
                return
        assert worker.poll() is None, worker.communicate()[1]
        assert time.monotonic() < deadline, "the job did not end"
        time.sleep(0.02)


def notes(url: str) -> set[str | None]:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        return set(connection.execute(sa.text("SELECT note FROM orders")).scalars())
