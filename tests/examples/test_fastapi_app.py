"""examples/fastapi_app: its README, its history, its own tests, and orders sent to a real server with a real worker."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import psycopg
import pytest
from readme_steps import Example, ExampleOf, Process

pytestmark = pytest.mark.timeout(300)  # a dozen processes, on a machine that may be busy

NAME = "fastapi_app"
OWN_REVISION = "*_add_the_tables_of_jobq.py"
PEOPLE = [f"customer{number}@example.org" for number in range(5)]


@pytest.fixture
def shop(example_of: ExampleOf) -> Example:
    """The example, on an empty database."""
    return example_of(NAME)


def serve(shop: Example) -> str:
    """Start the web server; its address."""
    shop.environment["UVICORN_PORT"] = str(shop.port)
    shop.start("uvicorn shop.main:app").until("Application startup complete")
    return f"http://localhost:{shop.port}"


def start_worker(shop: Example) -> Process:
    worker = shop.start("jobq run shop.jobs:app")
    worker.until("is at work")
    return worker


@pytest.mark.slow
def test_the_commands_of_the_readme_work_as_they_stand(example_alone: ExampleOf) -> None:
    shop = example_alone(NAME)
    shop.environment["UVICORN_PORT"] = str(shop.port)
    install, upgrade, server, worker, order, look, listing, show, tests = shop.steps()

    shop.run(install)
    assert "add the tables of jobq" in shop.run(upgrade)
    shop.start(server).until("Application startup complete")
    working = shop.start(worker)
    working.until("is at work")
    assert json.loads(shop.run(order))["id"] == 1
    assert "ada@example.org" in shop.run_until(look, '"receipt_sent_at":"')
    listed = shop.run_until(listing, "99 tea left")
    assert re.search(r"1 +done +mail +receipt\.send +1/5", listed)
    assert "451 ada@example.org is new here, try again later" in shop.run(show)
    assert re.search(r"\d+ passed", shop.run(tests))
    assert working.stop() == 0


@pytest.mark.slow
def test_each_order_sent_to_the_server_gets_one_receipt_from_the_worker(shop: Example, empty_database_url: str) -> None:
    shop.run("alembic upgrade head")
    worker = start_worker(shop)

    with httpx.Client(base_url=serve(shop)) as client:
        wishes = [{"email": email, "product": "tea", "quantity": 2} for email in PEOPLE * 4]
        placed = [client.post("/orders", json=wish).json()["id"] for wish in wishes]
        for order_id in placed:
            shop.run_until(f"curl -sf localhost:{shop.port}/orders/{order_id}", '"receipt_sent_at":"')

    assert worker.stop() == 0
    assert rows(empty_database_url, "SELECT order_id FROM receipts ORDER BY 1") == [(order_id,) for order_id in placed]
    sent = "SELECT (args ->> 'order_id')::int, state FROM jobq.all_jobs WHERE kind = 'receipt.send' ORDER BY 1"
    assert rows(empty_database_url, sent) == [(order_id, "done") for order_id in placed]
    assert sum("mail to customer" in line for line in worker.said) == len(placed)
    assert rows(empty_database_url, "SELECT stock FROM products WHERE name = 'tea'") == [(100 - 2 * len(placed),)]


@pytest.mark.slow
def test_an_order_that_the_server_refuses_leaves_no_job(shop: Example, empty_database_url: str) -> None:
    shop.run("alembic upgrade head")

    with httpx.Client(base_url=serve(shop)) as client:
        answer = client.post("/orders", json={"email": PEOPLE[0], "product": "honey", "quantity": 4})

    assert (answer.status_code, answer.json()) == (409, {"detail": "fewer than 4 honey in stock"})
    left = "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM jobq.all_jobs)"
    assert rows(empty_database_url, left) == [(0, 0)]
    assert rows(empty_database_url, "SELECT is_called FROM orders_id_seq") == [(True,)]  # it had been written


def test_the_history_goes_up_down_and_up_and_autogenerate_sees_nothing(shop: Example, empty_database_url: str) -> None:
    shop.run("alembic upgrade head")
    assert "No new upgrade operations detected" in shop.run("alembic check")

    shop.run("alembic downgrade base")
    assert rows(empty_database_url, "SELECT to_regclass('orders'), to_regnamespace('jobq')") == [(None, None)]

    shop.run("alembic upgrade head")
    assert "No new upgrade operations detected" in shop.run("alembic check")
    assert "CREATE TABLE jobq.jobs" in shop.run("alembic upgrade head --sql")


def test_the_revision_of_jobq_is_what_the_command_writes(shop: Example) -> None:
    versions = shop.directory / "migrations/versions"
    (kept,) = versions.glob(OWN_REVISION)
    assert "nothing to do" in shop.run("jobq migration new")
    before = kept.read_text()
    kept.unlink()

    shop.run("jobq migration new")

    (written,) = versions.glob(OWN_REVISION)
    assert without_id(written) == before.replace(revision_of(kept), "ID")


@pytest.mark.slow
def test_the_owners_tests_pass(shop: Example) -> None:
    assert re.search(r"\b\d+ passed", shop.run("python -m pytest -q"))


def test_the_types_of_the_shop_are_right(shop: Example, mypy_cache: Path) -> None:
    checked = shop.run(f"python -m mypy --strict --cache-dir={mypy_cache} shop tests migrations/env.py")

    assert "no issues found" in checked


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        return connection.execute(query).fetchall()


def revision_of(path: Path) -> str:
    return path.name.partition("_")[0]


def without_id(path: Path) -> str:
    return path.read_text().replace(revision_of(path), "ID")
