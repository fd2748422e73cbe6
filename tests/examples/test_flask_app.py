"""examples/flask_app: what its README says, its own tests, its history, and its server and worker as processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from readme_steps import Example, ExampleOf

READY = {"flask": "Running on", "jobq": "is at work"}

# Handlers of a worker with one thread and one connection in its pool. Each that leaves db.session open, dirty or
# aborted is followed by one that would suffer from it.
CARELESS = """
import threading

import jobq
import sqlalchemy as sa

from shop import create_app
from shop.database import db
from shop.models import Item

pool = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 5}
flask_app = create_app(SQLALCHEMY_ENGINE_OPTIONS=pool)
app = jobq.App()
app.around(flask_app.app_context)


@app.handler("aborted")
def leave_it_aborted() -> str:
    try:
        db.session.execute(sa.text("SELECT 1/0"))
    except sa.exc.DataError:
        pass
    return threading.current_thread().name


@app.handler("open")
def leave_it_open() -> str:
    item = db.session.scalars(sa.select(Item).filter_by(name="tea").with_for_update()).one()
    item.stock = 0
    db.session.flush()
    return threading.current_thread().name


@app.handler("raised", max_attempts=1)
def leave_it_by_an_error() -> None:
    db.session.add(Item(name="tea", stock=1))
    db.session.flush()  # there is tea already


@app.handler("next")
def write(name: str) -> str:
    session = db.session()
    assert not session.in_transaction() and not session.new and not session.dirty
    assert db.session.scalar(sa.select(Item.stock).filter_by(name="tea")) == 10
    db.session.add(Item(name=name, stock=1))
    db.session.commit()
    return threading.current_thread().name
"""

ENQUEUE = """
import careless
import jobq
from shop.database import db

with careless.flask_app.app_context():
    for handler in (careless.leave_it_aborted, careless.leave_it_open, careless.leave_it_by_an_error):
        jobq.enqueue(db.session, handler)
        jobq.enqueue(db.session, careless.write, name=f"after {handler.kind}")
    db.session.commit()
"""


@pytest.fixture
def shop(example_of: ExampleOf) -> Example:
    """A copy that has not been migrated."""
    return copied(example_of)


def copied(example_of: ExampleOf) -> Example:
    shop = example_of("flask_app")
    shop.environment["FLASK_RUN_PORT"] = str(shop.port)
    return shop


@pytest.mark.slow
def test_the_readme_works_on_a_fresh_clone(example_alone: ExampleOf) -> None:
    shop = copied(example_alone)
    printed = []
    for step in shop.steps():
        if step.endswith("&"):
            shop.start(step).until(READY[step.split()[0]])
        elif step.startswith("curl") and step.endswith("/1"):
            printed.append(shop.run_until(step, "8 x tea for ada@example.org"))
        elif step == "jobq stats":
            printed.append(shop.run_until(step, "2 done, 0 dead"))
        else:
            printed.append(shop.run(step))

    _, history, taken, _, refused, _, tests = printed
    assert "Running upgrade 9c27e5b3a810 -> e655a9507746, add the tables of jobq" in history
    assert '"receipt":null' in taken
    assert "not that many left" in refused
    assert "10 passed" in tests


@pytest.mark.slow
def test_an_order_that_came_by_http_gets_its_receipt_from_a_worker(shop: Example) -> None:
    shop.run("alembic upgrade head")
    server, worker = shop.start("flask --app shop run"), shop.start("jobq run shop.jobs:app")
    server.until(READY["flask"])
    worker.until(READY["jobq"])

    taken = [json.loads(order(shop, item, 3)) for item in ("tea", "coffee", "tea")]
    assert "not that many left" in order(shop, "coffee", 8)

    assert [each["id"] for each in taken] == [1, 2, 3]
    for each in taken:
        shown = shop.run_until(f"curl -s localhost:{shop.port}/orders/{each['id']}", "ada@example.org")
        assert json.loads(shown) == {**each, "receipt": f"3 x {each['item']} for ada@example.org"}
    assert len(listed(shop, "--kind receipt.send")) == len(taken)
    assert worker.stop() == 0


@pytest.mark.slow
def test_f36_a_session_that_one_job_left_open_or_aborted_never_reaches_the_next(shop: Example) -> None:
    (shop.directory / "careless.py").write_text(CARELESS)
    (shop.directory / "enqueue.py").write_text(ENQUEUE)
    shop.run("alembic upgrade head && python enqueue.py")

    worker = shop.start("jobq run careless:app --concurrency 1")
    shop.run_until("jobq stats", "0 pending, 0 running")

    jobs = sorted(listed(shop), key=lambda job: job["id"])
    assert [job["kind"] for job in jobs] == ["aborted", "next", "open", "next", "raised", "next"]
    assert [job["state"] for job in jobs] == ["done", "done", "done", "done", "dead", "done"]
    assert {job["outcome"] for job in jobs if job["state"] == "done"} == {"ok: jobq-handler-1"}
    assert worker.stop() == 0


def test_its_history_goes_up_and_down_and_the_models_agree_with_it(shop: Example, empty_database_url: str) -> None:
    shop.run("alembic upgrade head")
    shop.run("alembic downgrade base")
    with sa.create_engine(empty_database_url, poolclass=sa.NullPool).connect() as connection:
        assert sa.inspect(connection).get_table_names() == ["alembic_version"]
        assert "jobq" not in sa.inspect(connection).get_schema_names()

    shop.run("alembic upgrade head")
    assert "No new upgrade operations detected" in shop.run("alembic check")
    assert "CREATE TABLE jobq.jobs" in shop.run("alembic upgrade head --sql")


def test_its_revision_with_the_tables_of_jobq_is_what_the_command_writes(shop: Example) -> None:
    versions = shop.directory / "migrations/versions"
    (kept,) = versions.glob("*_add_the_tables_of_jobq.py")
    assert "nothing to do" in shop.run("jobq migration new")
    text = kept.read_text()
    for path in (kept, *versions.glob("*_receipts.py")):
        path.unlink()

    shop.run("jobq migration new")

    (written,) = versions.glob("*_add_the_tables_of_jobq.py")
    before, after = (path.name.partition("_")[0] for path in (kept, written))
    assert written.read_text() == text.replace(before, after)


def test_the_tests_of_its_owner_pass(shop: Example) -> None:
    assert "10 passed" in shop.run("pytest -q -p no:cacheprovider")


@pytest.mark.slow
def test_its_types_are_right(shop: Example, mypy_cache: Path) -> None:
    checked = shop.run(f"python -m mypy --strict --cache-dir={mypy_cache} shop tests migrations/env.py")

    assert "no issues found" in checked


def order(shop: Example, item: str, quantity: int) -> str:
    """What the server answers."""
    return shop.run(
        f"curl -s -d item={item} -d quantity={quantity} -d email=ada@example.org localhost:{shop.port}/orders"
    )


def listed(shop: Example, which: str = "") -> list[dict[str, Any]]:
    return [json.loads(line) for line in shop.run(f"jobq list --json {which}").splitlines()]
