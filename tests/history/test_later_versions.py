"""A later version of jobq, with one revision more, beside the history that an application has already."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from history_catalog import everything, run, schemas, tables
from history_shop import Shop

from jobq_migrations import DIRECTORY

SECOND = '''
"""One column more, and an index that is built while workers write."""
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def schema():
    return op.get_context().opts.get("jobq_schema", "jobq")


def upgrade():
    op.add_column("jobs", sa.Column("later", sa.Text), schema=schema())
    INDEX


def downgrade():
    op.drop_column("jobs", "later", schema=schema())
'''
CONCURRENTLY = """with op.get_context().autocommit_block():
        op.create_index("jobs_later", "jobs", ["later"], schema=schema(), postgresql_concurrently=True)"""
COLUMN = "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'jobq' AND column_name = 'later'"
VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'jobq.jobs_later'::regclass"
REVISION = "SELECT version_num FROM jobq.schema_version"


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """A folder with the migrations of the later version, to be put before those that are installed."""
    return make_later(tmp_path, index="pass")


def make_later(tmp_path: Path, *, index: str) -> Path:
    package = tmp_path / "later/jobq_migrations"
    shutil.copytree(DIRECTORY, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "versions/0002_later.py").write_text(SECOND.replace("INDEX", index))
    places = package / "places.py"
    places.write_text(places.read_text().replace('("0001",)', '("0001", "0002")'))
    return package.parent


def update(shop: Shop, folder: Path) -> None:
    """`pip install --upgrade jobq`"""
    shop.environment["PYTHONPATH"] = str(folder)


def go_back(shop: Shop) -> None:
    del shop.environment["PYTHONPATH"]


def test_one_revision_more_is_written_and_brings_the_difference(
    shop: Shop, empty_database_url: str, later: Path
) -> None:
    shop.new()
    shop.alembic("upgrade", "head")
    before = everything(empty_database_url)
    update(shop, later)

    text = shop.new()
    assert '"""bring the tables of jobq to 0002"""' in text
    assert 'jobq_migrations.upgrade(to="0002", since="0001")' in text
    assert 'jobq_migrations.downgrade(to="0001", since="0002")' in text
    assert "brings the tables to revision 0002 already: nothing to do" in shop.jobq("migration", "new").stdout
    assert shop.alembic("heads").stdout.count("(head)") == 1

    shop.alembic("upgrade", "head")
    assert run(empty_database_url, REVISION) == [("0002",)]
    assert run(empty_database_url, COLUMN) == [(1,)]
    assert shop.jobq("migrate").stdout == "the tables are at revision 0002 already\n"
    assert "No new upgrade operations" in shop.alembic("check").stdout

    shop.alembic("downgrade", "-1")
    assert everything(empty_database_url) == before
    shop.alembic("downgrade", "base")
    assert schemas(empty_database_url) == set()
    shop.alembic("upgrade", "head")
    assert run(empty_database_url, REVISION) == [("0002",)]


def test_an_old_schema_is_told_with_the_command_that_helps(shop: Shop, empty_database_url: str, later: Path) -> None:
    shop.new()
    shop.alembic("upgrade", "head")
    update(shop, later)

    said = shop.jobq("stats", fails=True).stderr
    assert "is at revision 0001, this jobq needs 0002: run `jobq migrate` or `alembic upgrade head`" in said
    assert "(in an Alembic history of your own: first `jobq migration new`)" in said


def test_a_history_that_begins_with_the_later_version_has_one_revision(
    shop: Shop, empty_database_url: str, later: Path
) -> None:
    update(shop, later)
    text = shop.new()

    assert 'jobq_migrations.upgrade(to="0002")' in text
    assert 'jobq_migrations.downgrade(to="base", since="0002")' in text
    shop.alembic("upgrade", "head")
    assert run(empty_database_url, REVISION) == [("0002",)]
    shop.alembic("downgrade", "-1")
    assert schemas(empty_database_url) == set()


def test_what_migrate_brought_is_not_brought_again(shop: Shop, empty_database_url: str, later: Path) -> None:
    shop.new()
    shop.alembic("upgrade", "head")
    update(shop, later)
    assert shop.jobq("migrate").stdout == "the tables are at revision 0002 now (before: 0001)\n"

    shop.new()
    said = shop.alembic("upgrade", "head").stderr
    assert said.count("are at revision 0002 already: nothing to do for 0002") == 1
    assert run(empty_database_url, REVISION) == [("0002",)]


def test_both_revisions_find_the_later_tables_of_migrate(shop: Shop, empty_database_url: str, later: Path) -> None:
    shop.new()
    update(shop, later)
    shop.new()
    shop.jobq("migrate")
    before = everything(empty_database_url)

    said = shop.alembic("upgrade", "head").stderr
    assert "are at revision 0002 already: nothing to do for 0001" in said
    assert "are at revision 0002 already: nothing to do for 0002" in said
    assert everything(empty_database_url) == before


def test_the_printed_sql_of_the_difference_is_the_difference(shop: Shop, empty_database_url: str, later: Path) -> None:
    first = shop.new().partition("revision = '")[2].partition("'")[0]
    shop.alembic("upgrade", "head")
    update(shop, later)
    shop.new()
    up = shop.alembic("upgrade", f"{first}:head", "--sql").stdout
    down = shop.alembic("downgrade", f"head:{first}", "--sql").stdout

    assert "CREATE TABLE" not in up
    before = everything(empty_database_url)
    run(empty_database_url, up)
    assert run(empty_database_url, REVISION) == [("0002",)]
    assert run(empty_database_url, COLUMN) == [(1,)]
    run(empty_database_url, down)
    assert everything(empty_database_url) == before


def test_an_older_jobq_refuses_the_history_of_the_later_one(shop: Shop, empty_database_url: str, later: Path) -> None:
    update(shop, later)
    shop.new()
    go_back(shop)

    said = shop.alembic("upgrade", "head", fails=True).stderr
    assert "this jobq does not know its revision '0002' (it knows 0001): install the version of jobq" in said
    assert tables(empty_database_url) == []
    assert "which this version does not know" in shop.jobq("migration", "new", fails=True).stderr


@pytest.mark.parametrize("options", ["", "transaction_per_migration=True"], ids=["one transaction", "one each"])
def test_a_revision_may_build_an_index_while_workers_write(
    shop: Shop, empty_database_url: str, tmp_path: Path, options: str
) -> None:
    """CONCURRENTLY runs outside of the transaction: the work before it is committed, the rest follows."""
    shop.write_env(options)
    shop.new()
    update(shop, make_later(tmp_path, index=CONCURRENTLY))
    shop.new()
    shop.write_revision("after", head(shop), "op.execute('CREATE TABLE after_it (id integer)')")
    shop.alembic("upgrade", "head")

    assert run(empty_database_url, REVISION) == [("0002",)]
    assert run(empty_database_url, VALID) == [(True,)]
    assert "public.after_it" in tables(empty_database_url)


def test_migrate_may_build_an_index_while_workers_write(shop: Shop, database_url: str, tmp_path: Path) -> None:
    update(shop.on(database_url), make_later(tmp_path, index=CONCURRENTLY))

    assert shop.jobq("migrate").stdout == "the tables are at revision 0002 now (before: 0001)\n"
    assert run(database_url, VALID) == [(True,)]


def head(shop: Shop) -> str:
    return shop.alembic("heads").stdout.split()[0]
