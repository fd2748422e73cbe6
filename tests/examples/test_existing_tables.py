"""examples/existing_tables: what its README says, its own tests, and its tables before and after jobq."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from readme_steps import ExampleOf

WITH_A_WRONG_ADDRESS = """
    1  Ada          30  sent     -
    2  Bob          12  -        dead     no address: bob at example.org
    3  Ada           7  sent     done     ok: to ada@example.org
    4  Bob          50  -        dead     no address: bob at example.org
"""
IN_THE_END = """
    1  Ada          30  sent     -
    2  Bob          12  sent     done     ok: to bob@example.org
    3  Ada           7  sent     done     ok: to ada@example.org
    4  Bob          50  sent     done     ok: to bob@example.org
"""
COLUMNS = """
    SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns
    WHERE table_schema = 'public' ORDER BY 1, 2
"""


@pytest.mark.slow
def test_the_readme_works_on_a_fresh_clone(example_alone: ExampleOf) -> None:
    shop = example_alone("existing_tables")
    reports = iter([WITH_A_WRONG_ADDRESS, IN_THE_END])
    for step in shop.steps():
        if step.endswith("&"):
            shop.start(step).until("is at work")
        elif step == "python -m shop report":
            shop.run_until(step, next(reports))
        else:
            shop.run(step)
    assert next(reports, None) is None


def test_the_tables_and_orders_of_before_stay_as_they_were(example_of: ExampleOf, empty_database_url: str) -> None:
    shop = example_of("existing_tables")
    shop.run("python -m shop before")
    with sa.create_engine(empty_database_url, poolclass=sa.NullPool).connect() as connection:
        before = connection.execute(sa.text(COLUMNS)).all(), connection.execute(sa.text("TABLE orders")).all()
        connection.rollback()

        assert "now (before: none)" in shop.run("jobq migrate")
        assert shop.run("python -m shop catch-up") == "3 jobs for orders that had none\n"

        after = connection.execute(sa.text(COLUMNS)).all(), connection.execute(sa.text("TABLE orders")).all()
    assert after == before
    assert shop.run("python -m shop catch-up") == "0 jobs for orders that had none\n"


def test_the_tests_of_its_owner_pass(example_of: ExampleOf) -> None:
    assert "5 passed" in example_of("existing_tables").run("pytest -q -p no:cacheprovider")


@pytest.mark.slow
def test_its_types_are_right(example_of: ExampleOf, mypy_cache: Path) -> None:
    shop = example_of("existing_tables")

    assert "no issues found" in shop.run(f"python -m mypy --strict --cache-dir={mypy_cache} shop tests")
