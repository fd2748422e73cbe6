"""jobq's tables through the `alembic upgrade head` of an application that exists already."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from history_catalog import ENDED, WAITING, everything, run, schemas, tables
from history_shop import ASYNC_ENV, PLAIN_ENV, PYPROJECT, Shop

from jobq.schema import check_schema

CLEAN = "No new upgrade operations detected."
WITH_SCHEMAS = "include_schemas=True"
FILTER = "include_name=jobq_migrations.include_name"
BOTH_FILTERS = "include_name=lambda *of: mine(*of) and jobq_migrations.include_name(*of)"
OWN_TABLES = ["public.alembic_version", "public.customers", "public.orders"]
ORDERS = "SELECT count(*) FROM orders WHERE note IS NULL"


@pytest.fixture
def older(shop: Shop) -> Shop:
    """At its own head, with data, when jobq comes."""
    shop.alembic("upgrade", "head")
    return shop


def is_complete(url: str) -> bool:
    """Whether a worker of this version would start there."""
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        check_schema(connection)
    return True


def test_f55_upgrade_head_makes_the_tables_and_check_stays_clean(
    older: Shop, empty_database_url: str, database_url: str
) -> None:
    older.new()
    assert CLEAN not in older.alembic("check", fails=True).stdout  # not up to date yet
    older.alembic("upgrade", "head")

    assert older.alembic("heads").stdout.count("(head)") == 1
    assert CLEAN in older.alembic("check").stdout
    assert is_complete(empty_database_url)
    assert everything(empty_database_url) == everything(database_url)  # which `jobq migrate` made
    assert run(empty_database_url, ORDERS) == [(1,)]


@pytest.mark.parametrize(
    "options",
    [f"{WITH_SCHEMAS}, {FILTER}", f"{WITH_SCHEMAS}, {BOTH_FILTERS}", FILTER, "compare_server_default=True"],
    ids=["all schemas", "all schemas and a filter of its own", "the filter alone", "defaults too"],
)
def test_f55_check_and_autogenerate_see_nothing_of_jobq(older: Shop, empty_database_url: str, options: str) -> None:
    older.write_env(options)
    older.new()
    older.alembic("upgrade", "head")
    if "mine" in options:
        run(empty_database_url, "CREATE TABLE legacy (id integer)")

    assert CLEAN in older.alembic("check").stdout
    older.alembic("revision", "--autogenerate", "-m", "nothing")
    (written,) = older.versions.glob("*_nothing.py")
    assert written.read_text().count("pass\n") == 2


def test_f55_the_filter_hides_only_what_is_jobqs(older: Shop, empty_database_url: str) -> None:
    older.write_env(f"{WITH_SCHEMAS}, {FILTER}")
    older.new()
    older.alembic("upgrade", "head")
    run(empty_database_url, "CREATE TABLE public.jobs (id integer)", "CREATE TABLE jobq.mine (id integer)")

    said = older.alembic("check", fails=True).stderr
    assert said.count("remove_table") == 2
    assert "Table('jobs'" in said
    assert "Table('mine'" in said


def test_f55_without_the_filter_all_schemas_would_be_compared(older: Shop) -> None:
    older.write_env(WITH_SCHEMAS)
    older.new()
    older.alembic("upgrade", "head")

    assert "remove_table" in older.alembic("check", fails=True).stderr


@pytest.mark.parametrize("options", ["", "transaction_per_migration=True"], ids=["one transaction", "one each"])
def test_f58_up_down_up_with_data_on_both_sides(shop: Shop, empty_database_url: str, options: str) -> None:
    shop.write_env(options)
    shop.new()
    shop.alembic("upgrade", "head")
    run(empty_database_url, WAITING, ENDED)

    shop.alembic("downgrade", "-1")
    assert tables(empty_database_url) == OWN_TABLES
    assert schemas(empty_database_url) == set()
    assert run(empty_database_url, ORDERS) == [(1,)]

    shop.alembic("upgrade", "head")
    assert run(empty_database_url, "SELECT count(*) FROM jobq.all_jobs") == [(0,)]
    shop.alembic("downgrade", "base")
    assert tables(empty_database_url) == ["public.alembic_version"]
    shop.alembic("upgrade", "head")
    assert is_complete(empty_database_url)


def test_revisions_of_the_application_go_on_after_it(older: Shop, empty_database_url: str) -> None:
    older.new()
    older.alembic("revision", "-m", "later")
    older.alembic("upgrade", "head")
    older.alembic("downgrade", "-1")

    assert is_complete(empty_database_url)
    assert "nothing to do" in older.jobq("migration", "new").stdout


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "pg8000", "asyncpg", "psycopg async"])
def test_every_driver_and_both_kinds_of_env_py_work(
    shop: Shop, empty_database_url: str, database_url: str, driver: str
) -> None:
    url = sa.make_url(empty_database_url).set(drivername=f"postgresql+{driver.split()[0]}")
    shop.on(url.render_as_string(hide_password=False))
    shop.write_env(end=ASYNC_ENV if driver in ("asyncpg", "psycopg async") else PLAIN_ENV)
    shop.new()
    shop.alembic("upgrade", "head")
    assert everything(empty_database_url) == everything(database_url)

    run(empty_database_url, WAITING)
    shop.alembic("downgrade", "base")
    assert tables(empty_database_url) == ["public.alembic_version"]
    shop.alembic("upgrade", "head")


def test_an_environment_of_a_pyproject_works(shop: Shop, empty_database_url: str) -> None:
    (shop.directory / "alembic.ini").unlink()
    shop.write("pyproject.toml", PYPROJECT)
    shop.new()
    shop.alembic("upgrade", "head")

    assert CLEAN in shop.alembic("check").stdout
    assert is_complete(empty_database_url)


@pytest.mark.parametrize(
    ("since", "offline"),
    [("", ""), ("s3:", "literal_binds=True, dialect_opts={'paramstyle': 'named'}")],
    ids=["from nothing", "from its own head, as Alembic's template has it"],
)
def test_the_printed_sql_does_it_all(
    shop: Shop, empty_database_url: str, database_url: str, since: str, offline: str
) -> None:
    shop.write_env(offline=offline)
    shop.new()
    if since:
        shop.alembic("upgrade", since.strip(":"))
    up = shop.alembic("upgrade", f"{since}head", "--sql").stdout
    down = shop.alembic("downgrade", "head:base", "--sql").stdout

    execute_script(empty_database_url, up)
    assert everything(empty_database_url) == everything(database_url)
    assert CLEAN in shop.alembic("check").stdout

    execute_script(empty_database_url, down)
    assert set(tables(empty_database_url)) <= {"public.alembic_version"}  # older Alembics print its DROP
    execute_script(empty_database_url, shop.alembic("upgrade", "head", "--sql").stdout.replace(*ALREADY))
    assert is_complete(empty_database_url)


ALREADY = ("CREATE TABLE alembic_version", "CREATE TABLE IF NOT EXISTS alembic_version")


def execute_script(url: str, text: str) -> None:
    run(url, text.replace("%", "%%"))


def test_f59_another_schema(older: Shop, empty_database_url: str) -> None:
    older.write_env(f"{WITH_SCHEMAS}, include_name=functools.partial(jobq_migrations.include_name, schema='shop')")
    path = Path("migrations/env.py")
    older.write(str(path), "import functools\n" + (older.directory / path).read_text())
    older.new("--schema", "shop")
    run(empty_database_url, "CREATE SCHEMA shop")
    older.alembic("upgrade", "head")

    engine = sa.create_engine(empty_database_url, poolclass=sa.NullPool)
    with engine.connect().execution_options(schema_translate_map={"jobq": "shop"}) as connection:
        check_schema(connection)
    assert schemas(empty_database_url) == {"shop"}
    assert CLEAN in older.alembic("check").stdout

    older.alembic("downgrade", "-1")
    assert schemas(empty_database_url) == {"shop"}  # the application's own, it stays
    assert tables(empty_database_url) == OWN_TABLES
    older.alembic("upgrade", "head")


def test_f59_the_schema_of_the_application_itself(older: Shop, empty_database_url: str) -> None:
    older.write_env("include_name=functools.partial(jobq_migrations.include_name, schema=None)")
    path = Path("migrations/env.py")
    older.write(str(path), "import functools\n" + (older.directory / path).read_text())
    older.new("--schema", "public")
    older.alembic("upgrade", "head")

    assert schemas(empty_database_url) == set()
    assert "public.jobs" in tables(empty_database_url)
    assert CLEAN in older.alembic("check").stdout
    older.alembic("downgrade", "-1")
    assert tables(empty_database_url) == OWN_TABLES
    older.alembic("upgrade", "head")  # there is no function left of the name of one that is to come


def test_f59_the_translation_of_the_connection_counts(older: Shop, empty_database_url: str) -> None:
    translated = "schema_translate_map={'jobq': 'other'}"
    older.write_env(
        end=PLAIN_ENV.replace("connection:\n", f"c:\n        connection = c.execution_options({translated})\n")
    )
    older.new()
    older.alembic("upgrade", "head")

    assert schemas(empty_database_url) == {"other"}
    assert "other.schema_version" in tables(empty_database_url)


SET_LIMITS = """
op.execute("SET LOCAL lock_timeout = '7s'")
op.execute("SET LOCAL statement_timeout = '9min'")
"""
NOTE_LIMITS = """
op.execute("CREATE TABLE limits (a) AS SELECT current_setting('lock_timeout') || current_setting('statement_timeout')")
"""


def test_revisions_around_it_keep_their_own_limits(shop: Shop, empty_database_url: str) -> None:
    """In one transaction with jobq's revision, which has limits of its own."""
    set_own = (
        "op.execute(\"SELECT set_config('lock_timeout', '7s', true), set_config('statement_timeout', '9min', true)\")"
    )
    shop.write_revision("s4", "s3", set_own)
    name = shop.new().partition("revision = '")[2].partition("'")[0]
    shop.write_revision("s5", name, NOTE_LIMITS)
    shop.alembic("upgrade", "head")

    assert run(empty_database_url, "SELECT a FROM limits") == [("7s9min",)]


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (
            ["CREATE SCHEMA jobq CREATE TABLE schema_version (version_num text)",
             "INSERT INTO jobq.schema_version VALUES ('0099')"],
            "schema jobq is at revision 0099, newer than this jobq knows (it needs 0001): install",
        ),
        (
            ["CREATE SCHEMA jobq CREATE TABLE workers (mine integer)"],
            "schema jobq was not migrated, nothing is changed: a table is there that no migration made (",
        ),
    ],
    ids=["newer", "in the way"],
)  # fmt: skip
def test_f60_what_does_not_fit_is_one_line_and_not_touched(
    older: Shop, empty_database_url: str, before: list[str], words: str
) -> None:
    run(empty_database_url, *before)
    there = tables(empty_database_url)
    older.new()

    assert words in older.alembic("upgrade", "head", fails=True).stderr
    assert tables(empty_database_url) == there


def test_another_database_system_is_one_line(offline_shop: Shop) -> None:
    offline_shop.on("sqlite:///shop.db").write_revision("s3", "s2", "pass")
    offline_shop.new()

    said = offline_shop.alembic("upgrade", "head", fails=True).stderr
    assert "the tables of jobq need PostgreSQL, this history runs on sqlite" in said


def test_a_downgrade_by_hand_has_to_say_where_it_starts_when_printed(offline_shop: Shop) -> None:
    offline_shop.write_revision("s4", "s3", "pass", 'import jobq_migrations\njobq_migrations.downgrade(to="base")')

    said = offline_shop.alembic("downgrade", "s4:s3", "--sql", fails=True).stderr
    assert (
        'offline the revision to start from has to be said: jobq_migrations.downgrade(to="base", since="0001")' in said
    )
