"""`jobq.schema`: migrate at any start, by anybody, at once; and what is said about a schema that does not fit."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

from jobq import schema, urls
from jobq.errors import BindError, SchemaError
from jobq.schema import Migrated, check_schema, migrate


@contextmanager
def connected(url: str, **options: object) -> Iterator[sa.Connection]:
    engine = sa.create_engine(url, poolclass=sa.NullPool, **options)
    with engine.connect() as connection:
        yield connection


@pytest.fixture
def role(empty_database_url: str) -> Iterator[sa.URL]:
    """A role with a password full of signs and no rights; the URL that it connects with."""
    name = f"role_{sa.make_url(empty_database_url).database}"
    with connected(empty_database_url, isolation_level="AUTOCOMMIT") as admin:
        admin.exec_driver_sql(f"CREATE ROLE {name} LOGIN PASSWORD 'p@ss%%/25'")
        yield sa.make_url(empty_database_url).set(username=name, password="p@ss%/25")
        admin.exec_driver_sql(f"DROP OWNED BY {name}; DROP ROLE {name}")


def versions(url: str) -> list[str]:
    with connected(url) as connection:
        return list(connection.exec_driver_sql("SELECT version_num FROM jobq.schema_version").scalars())


def schemas_with_tables(url: str) -> set[str]:
    with connected(url) as connection:
        names = connection.exec_driver_sql("SELECT DISTINCT relnamespace::regnamespace::text FROM pg_class")
        return {name for name in names.scalars() if not name.startswith(("pg_", "information_schema"))}


def test_migrate_says_what_was_there_and_what_is(empty_database_url: str) -> None:
    assert migrate(empty_database_url) == Migrated(before=None, after="0001")
    assert migrate(empty_database_url) == Migrated(before="0001", after="0001")
    assert versions(empty_database_url) == ["0001"]


def test_migrate_takes_engines_of_both_kinds_and_urls_in_any_form(empty_database_url: str) -> None:
    url = sa.make_url(empty_database_url)
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    async_engine = create_async_engine(url.set(drivername="postgresql+asyncpg"))

    assert migrate(async_engine).before is None
    for known in (engine, url, url.set(drivername="postgres").render_as_string(hide_password=False)):
        assert migrate(known).before == "0001"


def test_migrate_refuses_a_session(connection: sa.Connection) -> None:
    with pytest.raises(BindError, match="not Session: give it the session's engine"):
        migrate(Session(connection))  # type: ignore[arg-type]


@pytest.mark.parametrize("isolation", ["AUTOCOMMIT", "REPEATABLE READ", "SERIALIZABLE"])
def test_migrate_works_whatever_isolation_the_engine_has(empty_database_url: str, isolation: str) -> None:
    def settings(engine: sa.Engine) -> tuple[str, bool]:
        with engine.connect() as connection:
            return connection.get_isolation_level(), connection.connection.driver_connection.autocommit

    engine = sa.create_engine(empty_database_url, isolation_level=isolation)
    before = settings(engine)

    assert migrate(engine).after == "0001"

    assert settings(engine) == before
    engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg2", "pg8000"])
def test_migrate_works_through_the_drivers_of_an_application(empty_database_url: str, driver: str) -> None:
    url = sa.make_url(empty_database_url).set(drivername=f"postgresql+{driver}")
    engine = sa.create_engine(url, poolclass=sa.NullPool)

    assert migrate(engine).after == "0001"
    with engine.connect() as connection:
        check_schema(connection)


def test_migrate_at_head_and_check_schema_import_no_alembic(database_url: str) -> None:
    code = (
        "import sys, sqlalchemy; from jobq.schema import migrate, check_schema; from jobq import urls;"
        "url = urls.from_environment(); migrate(url); check_schema(sqlalchemy.create_engine(url).connect());"
        "sys.exit('alembic' in sys.modules)"
    )
    environment = {**os.environ, "JOBQ_DATABASE_URL": database_url}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_migrate_leaves_the_logging_of_the_application_alone(empty_database_url: str) -> None:
    def settings() -> list[object]:
        loggers = [logging.getLogger(name) for name in ("", "alembic", "sqlalchemy.engine", "jobq")]
        return [(logger.level, logger.handlers[:], logger.disabled, logger.propagate) for logger in loggers]

    before = settings()
    migrate(empty_database_url)

    assert settings() == before


@pytest.mark.parametrize("search_path", ["", "public"])
def test_f59_a_role_needs_no_search_path(role: sa.URL, empty_database_url: str, search_path: str) -> None:
    with connected(empty_database_url, isolation_level="AUTOCOMMIT") as admin:
        admin.exec_driver_sql(f"GRANT CREATE ON DATABASE {role.database} TO {role.username}")
        admin.exec_driver_sql(f"ALTER ROLE {role.username} SET search_path = '{search_path}'")

    assert migrate(role).after == "0001"

    with connected(role.render_as_string(hide_password=False)) as connection:
        assert connection.exec_driver_sql("SHOW search_path").scalar() in (search_path, '""')
        check_schema(connection)
    assert schemas_with_tables(empty_database_url) == {"jobq"}


def test_f59_another_schema_by_translation_holds_everything(empty_database_url: str) -> None:
    engine = sa.create_engine(empty_database_url, poolclass=sa.NullPool)
    translated = engine.execution_options(schema_translate_map={"jobq": 'of "shop"'})

    assert migrate(translated) == Migrated(before=None, after="0001")

    assert schemas_with_tables(empty_database_url) == {'"of ""shop"""'}
    with translated.connect() as connection:
        check_schema(connection)
        assert connection.exec_driver_sql('SELECT count(*) FROM "of ""shop""".all_jobs').scalar() == 0
    assert migrate(translated).before == "0001"
    assert migrate(engine).before is None  # two of them live side by side


def test_f60_a_missing_schema_is_named_with_the_command(empty_database_url: str) -> None:
    with connected(empty_database_url) as connection, pytest.raises(SchemaError) as refused:
        check_schema(connection)

    name = sa.make_url(empty_database_url).database
    assert str(refused.value) == (
        f"no jobq schema in database {name!r} (needs revision 0001): run `jobq migrate` or `alembic upgrade head`"
    )
    assert (refused.value.found, refused.value.needed) == (None, "0001")


def test_f60_an_old_schema_is_named_with_the_command(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "REVISIONS", ("0001", "0002"))
    with connected(database_url) as connection, pytest.raises(SchemaError) as refused:
        check_schema(connection)

    name = sa.make_url(database_url).database
    assert str(refused.value) == (
        f"the jobq schema in database {name!r} is at revision 0001, this jobq needs 0002:"
        " run `jobq migrate` or `alembic upgrade head` (in an Alembic history of your own: first `jobq migration new`)"
    )


def test_f60_a_newer_schema_is_refused_and_never_touched(database_url: str) -> None:
    with connected(database_url) as connection:
        connection.exec_driver_sql("UPDATE jobq.schema_version SET version_num = '0099'")
        connection.commit()
        with pytest.raises(SchemaError, match="is at revision 0099, newer than this jobq knows") as refused:
            check_schema(connection)
    with pytest.raises(SchemaError, match="install the version of jobq that migrated it"):
        migrate(database_url)

    assert refused.value.found == "0099"
    assert versions(database_url) == ["0099"]


def test_f60_the_check_leaves_the_transaction_usable(empty_database_url: str) -> None:
    with connected(empty_database_url) as connection:
        with pytest.raises(SchemaError):
            check_schema(connection)
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1


def test_f60_missing_rights_are_named(role: sa.URL, empty_database_url: str) -> None:
    url = role.render_as_string(hide_password=False)
    with pytest.raises(SchemaError, match=r"the role lacks a right \(permission denied for database"):
        migrate(role)
    migrate(empty_database_url)
    with connected(url) as connection, pytest.raises(SchemaError, match=r"grant it USAGE .*jobq grants\)"):
        check_schema(connection)
    with connected(empty_database_url, isolation_level="AUTOCOMMIT") as admin:
        admin.exec_driver_sql(f"GRANT USAGE ON SCHEMA jobq TO {role.username}")
    with connected(url) as connection, pytest.raises(SchemaError, match="grant it SELECT on its tables"):
        check_schema(connection)


def test_a_role_that_owns_the_schema_may_migrate_without_rights_on_the_database(
    role: sa.URL, empty_database_url: str
) -> None:
    with connected(empty_database_url, isolation_level="AUTOCOMMIT") as admin:
        admin.exec_driver_sql(f"CREATE SCHEMA jobq AUTHORIZATION {role.username}")

    assert migrate(role).after == "0001"


def test_f61_a_password_with_percent_signs_connects(role: sa.URL, empty_database_url: str) -> None:
    text = role.set(drivername="postgresql").render_as_string(hide_password=False)
    with connected(empty_database_url, isolation_level="AUTOCOMMIT") as admin:
        admin.exec_driver_sql(f"GRANT CREATE ON DATABASE {role.database} TO {role.username}")

    assert "%40" in text
    assert migrate(text).after == "0001"


def test_a_read_only_server_is_named(empty_database_url: str) -> None:
    url = sa.make_url(empty_database_url).update_query_dict({"options": "-c default_transaction_read_only=on"})
    with pytest.raises(SchemaError, match="the server is read-only"):
        migrate(url)


def test_a_table_that_no_migration_made_is_never_touched(empty_database_url: str) -> None:
    with connected(empty_database_url, isolation_level="AUTOCOMMIT") as admin:
        admin.exec_driver_sql("CREATE SCHEMA jobq; CREATE TABLE jobq.workers (mine integer)")

    with pytest.raises(SchemaError, match=r'no migration made \(relation "workers" already exists\)'):
        migrate(empty_database_url)


def test_the_printed_sql_does_what_migrate_does(empty_database_url: str) -> None:
    with connected(empty_database_url, isolation_level="AUTOCOMMIT") as admin:
        admin.exec_driver_sql(schema.migration_sql().replace("%", "%%"))
        check_schema(admin)

    assert migrate(empty_database_url).before == "0001"
    assert urls.safe(empty_database_url) not in schema.migration_sql()


def test_the_printed_sql_from_the_newest_revision_changes_nothing() -> None:
    assert "CREATE TABLE" not in schema.migration_sql("0001")
