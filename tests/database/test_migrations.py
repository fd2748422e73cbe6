"""The revisions, and Alembic's own command from the root of the repository."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from jobq import schema
from jobq.schema import check_schema, migrate
from jobq.tables import jobs
from jobq_migrations import DIRECTORY

ROOT = Path(__file__).parents[2]

WAITING = "INSERT INTO jobq.jobs (kind) VALUES ('waiting')"
RUNNING = "INSERT INTO jobq.jobs (kind, worker_id, attempt) VALUES ('running', 7, 1)"
ENDED = """
INSERT INTO jobq.finished_jobs (id, queue, kind, args, priority, run_at, attempt, failures, created_at, meta, errors,
                                state, expires_at)
SELECT 90 + n, 'default', 'ended', '{}', 1, now(), 1, 0, now(), '{}', '[]', state, now()
FROM unnest(ARRAY['done', 'dead', 'cancelled']) WITH ORDINALITY AS ended (state, n)
"""


class Operator:
    """Somebody who types `alembic` in the root of the repository."""

    def __init__(self) -> None:
        self.said = StringIO()
        self.config = Config(toml_file=ROOT / "pyproject.toml", stdout=self.said, output_buffer=self.said)
        self.revisions = [script.revision for script in ScriptDirectory.from_config(self.config).walk_revisions()][::-1]

    def upgrade(self) -> None:
        command.upgrade(self.config, "head")

    def downgrade(self) -> None:
        command.downgrade(self.config, "base")

    def upgrade_one_by_one(self) -> None:
        for revision in self.revisions:
            command.upgrade(self.config, revision)

    def downgrade_one_by_one(self) -> None:
        for _ in self.revisions:
            command.downgrade(self.config, "-1")


@pytest.fixture
def operator(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> Operator:
    monkeypatch.setenv("JOBQ_DATABASE_URL", empty_database_url)
    return Operator()


@pytest.fixture
def superuser(empty_database_url: str) -> sa.Engine:
    return sa.create_engine(empty_database_url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")


def run(superuser: sa.Engine, *statements: str) -> None:
    with superuser.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def leftovers(superuser: sa.Engine) -> list[str]:
    """Everything in the database that is not PostgreSQL's own: schemas, relations, types, functions."""
    objects = """
        SELECT nspname FROM pg_namespace WHERE nspname <> 'public'
        UNION ALL SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
        UNION ALL SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace
        UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    """
    with superuser.connect() as connection:
        names = connection.exec_driver_sql(objects).scalars()
        return [name for name in names if not name.startswith("pg_") and name != "information_schema"]


def test_the_revisions_that_the_library_knows_are_the_files() -> None:
    assert list(schema.REVISIONS) == Operator().revisions


def test_a_revision_imports_nothing_of_jobq() -> None:
    texts = [path.read_text() for path in (DIRECTORY / "versions").glob("*.py")]
    lines = [line for text in texts for line in text.splitlines() if line.startswith(("import ", "from "))]

    assert not [line for line in lines if "jobq" in line]


def test_f57_the_folder_of_the_migrations_does_not_shadow_alembic() -> None:
    from_root = {"cwd": ROOT, "check": True, "capture_output": True, "text": True}
    imported = subprocess.run([sys.executable, "-c", "from alembic import op; print(op.__name__)"], **from_root)
    helped = subprocess.run([sys.executable, "-m", "alembic", "--help"], **from_root)

    assert imported.stdout == "alembic.op\n"
    assert "upgrade" in helped.stdout
    assert not (ROOT / "alembic/__init__.py").exists()
    assert not (ROOT / "cli/__init__.py").exists()


def test_f57_the_migrations_are_found_from_anywhere(empty_database_url: str, tmp_path: Path) -> None:
    code = "import sys; from jobq.schema import migrate; print(migrate(sys.stdin.read()).after)"
    run_there = {"cwd": tmp_path, "check": True, "capture_output": True, "text": True}
    migrated = subprocess.run([sys.executable, "-c", code], input=empty_database_url, **run_there)

    assert migrated.stdout == "0001\n"


@pytest.mark.parametrize(
    ("up", "down"),
    [
        (Operator.upgrade, Operator.downgrade),
        (Operator.upgrade_one_by_one, Operator.downgrade_one_by_one),
    ],
    ids=["one transaction for all", "a transaction each"],
)
def test_f58_up_down_up_with_jobs_present(
    operator: Operator, superuser: sa.Engine, up: Callable[[Operator], None], down: Callable[[Operator], None]
) -> None:
    up(operator)
    run(superuser, WAITING, RUNNING, ENDED)
    with superuser.connect() as connection:
        states = connection.exec_driver_sql("SELECT state FROM jobq.all_jobs ORDER BY state").scalars()
        assert list(states) == ["cancelled", "dead", "done", "pending", "running"]

    down(operator)
    assert leftovers(superuser) == []

    up(operator)
    with superuser.connect() as connection:
        check_schema(connection)
        assert connection.scalar(sa.select(sa.func.count()).select_from(jobs)) == 0


def test_f58_a_schema_with_something_else_in_it_stays(operator: Operator, superuser: sa.Engine) -> None:
    operator.upgrade()
    run(superuser, "CREATE TABLE jobq.mine (id integer)")

    operator.downgrade()

    with superuser.connect() as connection:
        assert sa.inspect(connection).get_table_names("jobq") == ["mine"]
    operator.upgrade()


def test_f58_the_printed_downgrade_undoes_the_printed_upgrade(operator: Operator, superuser: sa.Engine) -> None:
    command.upgrade(operator.config, "head", sql=True)
    command.downgrade(operator.config, "head:base", sql=True)
    run(superuser, operator.said.getvalue())

    assert leftovers(superuser) == ["jobq"]  # the schema itself: it cannot be known offline who made it


def test_f56_the_version_table_of_the_application_is_untouched(operator: Operator, superuser: sa.Engine) -> None:
    run(
        superuser,
        "CREATE TABLE public.alembic_version (version_num varchar(32) PRIMARY KEY)",
        "INSERT INTO public.alembic_version VALUES ('deadbeef')",
    )
    migrate(superuser)
    operator.upgrade()
    command.check(operator.config)
    operator.downgrade()

    with superuser.connect() as connection:
        context = MigrationContext.configure(connection)  # as the application has it
        assert context.get_current_revision() == "deadbeef"


def test_f55_check_finds_no_difference(operator: Operator) -> None:
    operator.upgrade()
    command.check(operator.config)

    assert "No new upgrade operations detected" in operator.said.getvalue()


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("ALTER TABLE jobq.jobs DROP COLUMN callsite CASCADE", "add_column"),
        ("ALTER TABLE jobq.queues ALTER COLUMN weight TYPE bigint", "modify_type"),
        ("ALTER TABLE jobq.queues ALTER COLUMN weight SET DEFAULT 2", "modify_default"),
        ("ALTER TABLE jobq.leader ALTER COLUMN term DROP NOT NULL", "modify_nullable"),
        ("DROP INDEX jobq.jobs_lane", "add_index"),
        ("DROP TABLE jobq.schedules", "add_table"),
        ("CREATE TABLE jobq.mine (id integer)", "remove_table"),
    ],
    ids=lambda words: words.split(" (")[0] if " " in words else "",
)
def test_f55_check_finds_what_was_changed_by_hand(
    operator: Operator, superuser: sa.Engine, damage: str, found: str
) -> None:
    operator.upgrade()
    run(superuser, damage)

    with pytest.raises(CommandError, match=f"New upgrade operations detected.*{found}"):
        command.check(operator.config)


def test_f55_tables_of_the_application_are_no_difference(operator: Operator, superuser: sa.Engine) -> None:
    run(superuser, "CREATE TABLE public.orders (id integer)", "CREATE SCHEMA shop CREATE TABLE items (id integer)")
    operator.upgrade()

    command.check(operator.config)


def test_f55_an_autogenerate_of_the_application_sees_nothing_of_jobq(superuser: sa.Engine) -> None:
    migrate(superuser)
    with superuser.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), sa.MetaData()) == []


def test_current_says_the_revision_and_changes_nothing(operator: Operator, superuser: sa.Engine) -> None:
    command.current(operator.config)
    assert operator.said.getvalue() == ""
    assert leftovers(superuser) == []

    operator.upgrade()
    command.current(operator.config)
    assert operator.said.getvalue() == "0001 (head)\n"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "no database to migrate: set JOBQ_DATABASE_URL or DATABASE_URL"),
        ("postgres://u:sekret@h:x/db", "malformed"),
    ],
    ids=["missing", "malformed"],
)
def test_the_command_says_which_variable_it_reads(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, value: str, words: str
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("JOBQ_DATABASE_URL", value)

    with pytest.raises(CommandError, match=words) as refused:
        operator.upgrade()
    assert "sekret" not in str(refused.value)
