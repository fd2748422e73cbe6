"""`jobq check` as it is run: on a project of its own, with and without a database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

import pytest
import sqlalchemy as sa
from admin_rows import add_ended, add_job
from sqlalchemy.orm import Session

import jobq
from jobq.checking import rows as checking
from jobq.tables import jobs, schedules

ROOT = Path(__file__).parents[2]
EXAMPLES = {path.parents[1].name: path.parent for path in sorted(ROOT.glob("examples/*/*/jobs.py"))}
JOBS = """
import jobq
from datetime import timedelta

app = jobq.App()

@app.handler("email.send")
async def send(to: str, n: int = 0) -> None: ...

@app.every(timedelta(hours=1))
@app.handler("night")
async def night() -> None: ...

@app.handler("unused")
async def unused() -> None: ...
"""
WEB = """
import jobq
from shop.jobs import send
raise RuntimeError("this module is not imported")

def order(session):
    jobq.enqueue(session, send, to="ada")
    jobq.enqueue(session, jobq.kind("email.send", queue="mail"), to="ada", n=1)
"""
BROKEN = """
import jobq
from shop import jobs

def order(session, handler):
    jobq.enqueue(session, jobs.send, too="ada")
    jobq.enqueue(session, handler)
    session.execute("SELECT jobq.enqueue('email.sent')")
"""
Check: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A package with an application, in a folder with a pyproject.toml."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/__init__.py").touch()
    (tmp_path / "shop/jobs.py").write_text(JOBS)
    (tmp_path / "shop/web.py").write_text(WEB)
    return tmp_path


@pytest.fixture
def check(project: Path) -> Check:
    """Run `jobq check shop.jobs:app` in the project."""

    def run(*arguments: str, url: str | None = None, app: str = "shop.jobs:app") -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.endswith("DATABASE_URL")}
        environment |= {"DATABASE_URL": url} if url else {}
        return subprocess.run(
            [sys.executable, "-m", "jobq", "check", app, *arguments],
            cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    return run


def test_a_project_without_faults_says_what_was_looked_at(check: Check) -> None:
    done = check()

    assert (done.returncode, done.stdout) == (0, "0 faults: 2 enqueues, 1 schedule\n")
    assert done.stderr == "never enqueued in these sources: unused\n"


def test_each_fault_has_its_file_and_line_and_the_exit_code_is_1(check: Check, project: Path) -> None:
    (project / "shop/broken.py").write_text(BROKEN)
    (project / "triggers.sql").write_text("-- a trigger\nSELECT jobq.enqueue('gone');\n")

    done = check("--verbose")

    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "shop/broken.py:6: email.send: args.to: missing",
        "shop/broken.py:6: email.send: args.too: unknown argument (known: to, n)",
        "shop/broken.py:8: no handler for kind 'email.sent': is it 'email.send'?",
        "triggers.sql:2: no handler for kind 'gone'",
        "4 faults: 6 enqueues, 1 schedule",
    ]
    assert "shop/broken.py:7: not checked" in done.stderr


def test_for_machines_there_is_one_object_a_line(check: Check, project: Path) -> None:
    (project / "shop/broken.py").write_text(BROKEN)

    *faults, counts = map(json.loads, check("--json").stdout.splitlines())

    assert [(fault["path"], fault["line"], fault["kind"]) for fault in faults] == [
        ("shop/broken.py", 6, "email.send"),
        ("shop/broken.py", 6, "email.send"),
        ("shop/broken.py", 8, "email.sent"),
    ]
    assert counts == {
        "faults": 3, "enqueues": 5, "schedules": 1, "waiting_jobs": None, "unused": ["unused"], "not_checked": 1,
    }  # fmt: skip


def test_environments_hidden_folders_builds_and_tests_are_passed_over(check: Check, project: Path) -> None:
    (project / "env").mkdir()
    (project / "env/pyvenv.cfg").touch()
    for folder in ("env", ".hidden", "node_modules", "build", "tests", "shop/tests", "__pycache__"):
        (project / folder).mkdir(exist_ok=True)
        (project / folder / "broken.py").write_text(BROKEN)
    (project / "test_orders.py").write_text(BROKEN)

    assert check().returncode == 0
    assert check("--source", "tests").returncode == 1
    assert check("--source", "test_orders.py").returncode == 1


def test_a_file_that_cannot_be_parsed_is_said_and_the_others_are_checked(check: Check, project: Path) -> None:
    (project / "shop/old.py").write_text("print 'hello'\n")

    done = check()

    assert (done.returncode, done.stdout) == (0, "0 faults: 2 enqueues, 1 schedule\n")
    assert "shop/old.py:1: cannot be read: Missing parentheses" in done.stderr


@pytest.mark.parametrize(
    ("app", "code", "said"),
    [
        ("shop/jobs.py:app", 2, "is a file: write the module, shop.jobs:app"),
        ("shop.nothing:app", 1, "cannot import shop.nothing"),
        ("shop.web:app", 1, "RuntimeError: this module is not imported"),
    ],
)
def test_what_is_no_app_is_told_in_one_line(app: str, code: int, said: str, check: Check) -> None:
    done = check(app=app)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert said in done.stderr


def test_several_apps_share_a_database(check: Check, project: Path) -> None:
    (project / "shop/other.py").write_text("import jobq\napp = jobq.App()\n@app.handler('other')\ndef other(): ...\n")
    (project / "shop/more.py").write_text("import jobq\nfrom .other import other\njobq.enqueue(s, other)\n")

    alone, both = check(), check("shop.other:app")

    assert alone.stdout.startswith("shop/more.py:3: no handler for kind 'other': shop/other.py:4 registers one")
    assert (both.returncode, both.stdout) == (0, "0 faults: 3 enqueues, 1 schedule\n")


def test_jobs_that_wait_without_a_handler_or_with_wrong_args_are_faults(
    check: Check, engine: sa.Engine, database_url: str
) -> None:
    with engine.begin() as connection:
        for to in ("ada", 5, 6):
            add_job(connection, args={"to": to}, callsite="shop/orders.py:88")
        first = add_job(connection, kind="gone", args={}, run_at=sa.func.now() + timedelta(days=1))
        add_job(connection, kind="gone", args={})
        add_job(connection, kind="gone", args={}, worker_id=1)
        add_ended(connection, kind="gone")
        connection.execute(sa.insert(schedules).values(name="old", kind="lost", form="cron", expression="@daily"))

    done = check(url=database_url)

    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"jobs: job {first} and 1 more wait: no handler for kind 'gone'",
        "schedules: the database's schedule 'old': no handler for kind 'lost'",
        f"shop/orders.py:88: job {first - 2} and 1 more wait: email.send: args.to: expected str, got int 5",
        "3 faults: 2 enqueues, 1 schedule, 5 waiting jobs",
    ]
    assert check("--no-database", url=database_url).returncode == 0


def test_jobs_are_read_in_chunks_to_the_last(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "CHUNK", 2)
    app = jobq.App()
    handler = app.handler("k")(lambda n: None)
    jobq.enqueue_many(session, handler, [{"n": n} for n in range(7)])
    (last,) = jobq.enqueue_many(session, jobq.kind("k", queue="q"), [{}])
    chunks: list[int] = []
    connection = session.connection()

    rows = checking.Rows.of(connection)
    checking.check_rows(connection, rows, app.handlers, chunks.append)

    assert (rows.total, rows.checked, chunks) == (8, 8, [2, 2, 2, 2])
    assert [fault.problem for fault in rows.faults] == [f"job {last.id} waits: k: args.n: missing"]


def test_an_empty_database_has_no_faults(session: Session) -> None:
    connection = session.connection()
    connection.execute(sa.delete(jobs))

    checking.check_rows(connection, rows := checking.Rows.of(connection), {})

    assert (rows.checked, rows.faults) == (0, [])


def test_a_database_without_the_tables_is_told_as_everywhere(check: Check, empty_database_url: str) -> None:
    done = check(url=empty_database_url)

    assert (done.returncode, done.stdout) == (1, "")
    assert "jobq migrate" in done.stderr


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_pass(example: str) -> None:
    environment = {**os.environ, "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"}  # importing needs a URL

    done = subprocess.run(
        [sys.executable, "-m", "jobq", "check", f"{EXAMPLES[example].name}.jobs:app", "--no-database"],
        cwd=EXAMPLES[example].parent, env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert (done.returncode, done.stdout[:10]) == (0, "0 faults: "), done.stdout + done.stderr
    assert "not checked" not in done.stderr
