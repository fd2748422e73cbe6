"""Canaries over the output of every command there is: values of secret arguments, and the database's password."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus
from uuid import uuid4

import canary_commands
import psycopg
import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended, add_job, add_worker
from canary_commands import COMMANDS, REFUSED, lines

import jobq
from jobq.store.leasing import Published, publish
from jobq.tables import queues, schedules
from jobq_cli.app import run

CANARY = "k4nary-in-args"
PASSWORD = "k4na/ry@p4ss%"
NOWHERE = "postgresql://nobody@127.0.0.1:1/none"
BAD_URLS = [
    pytest.param(NOWHERE.replace("@", f":{quote(PASSWORD, safe='')}@"), id="nobody listens"),
    pytest.param(NOWHERE.replace("@", f":{PASSWORD}@"), id="malformed"),
    pytest.param(f"{NOWHERE}?password={quote(PASSWORD, safe='')}&nonsense=1", id="in an option"),
]
NEEDS_NO_DATABASE = {"grants", "db url", "db stop", "version", "run"}
PLACE = {"card": CANARY, "auth": {"password": CANARY}, "to": "ada"}
TOLD = {"checkpoint": {"card": CANARY, "at": 1}, "token": CANARY, "authorization": CANARY}
APP = """
import jobq

app = jobq.App()

@app.handler("charge")
def charge(card: jobq.Secret[str], auth: dict[str, str], to: str) -> None: ...

app.schedule(jobq.cron("@daily", name="nightly"), charge, card="its own", auth={}, to="ada")
"""
Say = Callable[[list[str]], tuple[int, str]]


@pytest.fixture
def say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Say:  # fmt: skip
    """Run a command line in a project: its exit code, and all that it prints and logs."""
    caplog.set_level("DEBUG")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "canary_shop.py").write_text(APP)
    monkeypatch.delitem(sys.modules, "canary_shop", raising=False)

    def call(words: list[str]) -> tuple[int, str]:
        capsys.readouterr()
        caplog.clear()
        return run(words), "\n".join([*capsys.readouterr(), caplog.text])

    return call


@pytest.fixture
def jobs(rows: sa.Connection) -> dict[str, int]:
    """A fleet with secrets in everything that has args: waiting, running and dead jobs, a schedule."""

    @jobq.App().handler("charge")
    def charge(card: jobq.Secret[str], auth: dict[str, str], to: str) -> None: ...

    publish(rows, [Published.of(charge)], [])
    add_worker(rows, 7, kinds=["charge"], schedules=["nightly"])
    progress = {"fraction": 0.5, "message": "half", "attempt": 1}
    add_job(
        rows, kind="charge", args=PLACE, meta={**TOLD, "progress": progress}, worker_id=7, attempt=1, attempted_at=NOW
    )
    rows.execute(sa.insert(queues).values(name="default", paused_at=NOW, paused_until=NOW + timedelta(days=1)))
    job = {"args": PLACE, "queue": "default", "priority": 1, "delay": 0, "max_attempts": 3, "meta": {}}
    timing = {"name": "nightly", "form": "cron", "expression": "@daily"}
    rows.execute(sa.insert(schedules).values(kind="charge", job=job, **timing))
    ended: dict[str, Any] = {"meta": TOLD, "result": {"card": CANARY, "number": 2}, "outcome": "err: declined"}
    dead = add_ended(rows, "dead", kind="charge", args=PLACE, **ended)
    return {"id": add_job(rows, kind="charge", args=PLACE, meta=TOLD), "dead": dead}


@pytest.fixture
def secret_url(admin: psycopg.Connection, database_url: str) -> Iterator[str]:
    """The test's database, as one who may do what its owner may, with a password that one would see anywhere."""
    name = f"jobq_canary_{uuid4().hex[:8]}"
    admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}' IN ROLE CURRENT_USER")
    yield sa.make_url(database_url).set(username=name, password=PASSWORD).render_as_string(hide_password=False)
    admin.execute(f"DROP ROLE {name}")


def test_every_command_is_looked_at() -> None:
    """A new command gets a line in canary_commands.py: what it is run with here."""
    assert sorted(COMMANDS) == sorted(name for name, _ in canary_commands.found())


@pytest.mark.parametrize("command", COMMANDS)
def test_f69_no_value_of_a_secret_argument_is_printed(
    command: str, say: Say, jobs: dict[str, int], database_url: str
) -> None:
    told = [say(words) for words in lines(command, canary=CANARY, app="canary_shop:app", url=NOWHERE, **jobs)]

    assert_it_worked(command, told)
    assert [said for _, said in told if CANARY in said] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_f69_the_password_of_the_database_is_printed_by_no_command(
    command: str, say: Say, jobs: dict[str, int], secret_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBQ_DATABASE_URL", secret_url)
    monkeypatch.setenv("JOBQ_LISTEN_URL", secret_url)

    told = [say(words) for words in lines(command, canary="none", app="canary_shop:app", url=secret_url, **jobs)]

    assert_it_worked(command, told)
    assert [said for _, said in told if found_in(said)] == []


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("url", BAD_URLS)
def test_f69_nor_by_one_that_cannot_connect(url: str, command: str, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBQ_DATABASE_URL", url)
    values = {"canary": "none", "app": "canary_shop:app", "url": url, "id": 1, "dead": 2}

    words = next(lines(command, **values))
    told = [say(words), say(["--database-url", url, *words])]

    assert [said for _, said in told if found_in(said)] == []
    assert any(code for code, _ in told) or command in NEEDS_NO_DATABASE


def assert_it_worked(command: str, told: list[tuple[int, str]]) -> None:
    """The first time: what has been done already is refused, and what is said then is looked at like the rest."""
    code, said = told[0]
    assert code == REFUSED.get(command, 0), said
    assert all(said.strip() for _, said in told)


def found_in(text: str) -> list[str]:
    """The password, in whatever form, or its first part: a malformed URL may be cut anywhere."""
    forms = [PASSWORD, PASSWORD[:4], quote(PASSWORD, safe=""), quote_plus(PASSWORD), json.dumps(PASSWORD)[1:-1]]
    return [each for each in forms if each in text]
