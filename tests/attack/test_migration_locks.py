"""A12: migrations beside traffic and many rows: nobody waits a second for their locks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest
from fleet import until
from lengths import length
from lock_probe import ON_JOBQ, probing
from tally import tally

from jobq_migrations import DIRECTORY, REVISIONS
from jobq_migrations.places import BASE

ROOT = Path(__file__).parents[2]
ROWS = length(ci=20_000, chaos=1_000_000, long=5_000_000)
LONGEST_SECONDS = 1.0
ORDERS = f"CREATE TABLE orders (id bigint PRIMARY KEY, n int); INSERT INTO orders SELECT i, i FROM generate_series(1, {ROWS}) i"  # noqa: E501, S608
ON_ORDERS = (
    "UPDATE orders SET n = n + 1 WHERE id = 1",
    "SELECT sum(n) FROM orders WHERE id < 10",
    "INSERT INTO orders VALUES (1, 1) ON CONFLICT DO NOTHING",
)
JOBS = f"INSERT INTO jobq.jobs (kind, run_at) SELECT 'k', now() + interval '1 day' FROM generate_series(1, {ROWS})"  # noqa: S608
FINISHED = f"""
INSERT INTO jobq.finished_jobs (id, queue, kind, args, priority, run_at, attempt, failures, created_at, meta, errors,
                                state, finished_at, expires_at)
SELECT -i, 'q', 'k', '{{}}', 1, now(), 1, 0, now(), '{{}}', '[]', 'done', now(), now() + interval '1 day'
FROM generate_series(1, {ROWS}) i
"""  # noqa: S608
LATER = '''
"""A later revision."""
import sqlalchemy as sa
from alembic import op

revision = "later"
down_revision = "%s"
branch_labels = depends_on = None


def upgrade():
    op.add_column("jobs", sa.Column("later", sa.Text), schema="jobq")
    op.add_column("finished_jobs", sa.Column("later", sa.Text), schema="jobq")
    %s


def downgrade():
    pass
'''
CONCURRENTLY = """with op.get_context().autocommit_block():
        op.create_index("jobs_later", "jobs", ["later"], schema="jobq", postgresql_concurrently=True)"""
SLOWLY = """op.execute("SELECT pg_sleep(1.5)")"""  # what a rewrite of the table would take, with its lock held
pytestmark = pytest.mark.timeout(length(ci=120, chaos=600, long=3600))


def execute(url: str, *statements: str) -> int:
    """How many rows the last one gave or changed."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        return [connection.execute(each).rowcount for each in statements][-1]


def start(url: str, *command: str, path: Path | None = None) -> subprocess.Popen[str]:
    environment = {**os.environ, "JOBQ_DATABASE_URL": url, **({"PYTHONPATH": str(path)} if path else {})}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, env=environment, text=True, **pipes)


def run(url: str, *command: str, path: Path | None = None) -> None:
    process = start(url, *command, path=path)
    said = process.communicate()
    assert process.returncode == 0, said


@pytest.mark.parametrize(("before", "revision"), list(pairwise([BASE, *REVISIONS])))
def test_each_revision_beside_traffic(empty_database_url: str, before: str, revision: str) -> None:
    """The first one beside an application's table; each later one on tables full of rows of the revision before."""
    execute(empty_database_url, ORDERS)
    if before != BASE:
        run(empty_database_url, "alembic", "upgrade", before)
        execute(empty_database_url, JOBS, FINISHED)

    with probing(empty_database_url, ON_ORDERS if before == BASE else [*ON_ORDERS, *ON_JOBQ]) as probe:
        run(empty_database_url, "alembic", "upgrade", revision)

    tell(f"from {before} to {revision}", probe.longest_seconds)
    assert probe.longest_seconds < LONGEST_SECONDS


@pytest.mark.parametrize("command", ["jobq migrate", "alembic upgrade head"])
def test_a_migration_that_has_nothing_to_do(database_url: str, command: str) -> None:
    execute(database_url, JOBS, FINISHED)

    with probing(database_url) as probe:
        run(database_url, *command.split())

    tell("at head", probe.longest_seconds)
    assert probe.longest_seconds < LONGEST_SECONDS


@pytest.mark.parametrize(("what", "is_slow"), [(CONCURRENTLY, False), (SLOWLY, True)], ids=["good", "slow"])
def test_the_probe_finds_a_revision_that_holds_a_lock(
    database_url: str, tmp_path: Path, what: str, is_slow: bool
) -> None:
    execute(database_url, JOBS, FINISHED)

    with probing(database_url) as probe:
        run(database_url, "jobq", "migrate", path=later(tmp_path, what))

    if is_slow:
        tally("A12 slow revision", caught=int(probe.longest_seconds >= LONGEST_SECONDS))
    assert (probe.longest_seconds >= LONGEST_SECONDS) is is_slow


def test_a_migration_behind_a_long_transaction_holds_up_nobody_for_long(database_url: str, tmp_path: Path) -> None:
    path = later(tmp_path, "")
    with psycopg.connect(database_url.replace("+psycopg", "")) as reader:
        reader.execute("SELECT FROM jobq.jobs")
        with probing(database_url) as probe:
            migrating = start(database_url, "jobq", "migrate", path=path)
            waited = "SELECT FROM pg_stat_activity WHERE wait_event = 'relation' AND query LIKE 'ALTER TABLE%'"
            until(lambda: execute(database_url, waited), "the migration's wait")
            until(lambda: probe.longest_seconds > 0.3, "others behind it")
            reader.rollback()
            _, said = migrating.communicate(timeout=60)

    tell("behind a long transaction", probe.longest_seconds)
    assert (migrating.returncode, said) == (0, "")
    assert probe.longest_seconds < LONGEST_SECONDS


def later(folder: Path, what: str) -> Path:
    """A later version of the migrations, to be put before those that are installed."""
    package = folder / "jobq_migrations"
    shutil.copytree(DIRECTORY, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "versions/later.py").write_text(LATER % (REVISIONS[-1], what))
    places = package / "places.py"
    places.write_text(places.read_text() + 'REVISIONS = (*REVISIONS, "later")\n')
    return folder


def tell(what: str, longest_seconds: float) -> None:
    print(f"longest wait {longest_seconds * 1000:.0f} ms")
    tally(f"A12 migration {what}", rows=ROWS, violations=int(longest_seconds >= LONGEST_SECONDS))
