"""Secrets in what the commands print of rows, and of what was typed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from admin_rows import add_job

import jobq
from jobq.store.leasing import Published, publish
from jobq.tables import jobs
from jobq_cli.app import run

CANARY = "k4nary"
APP = """
import jobq

app = jobq.App()

@app.handler("charge")
def charge(card: jobq.Secret[str], to: str) -> None: ...
"""
app = jobq.App()


@app.handler("charge")
def charge(card: jobq.Secret[str], to: str) -> None: ...


@pytest.fixture
def connection(engine: sa.Engine) -> Iterator[sa.Connection]:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection


def test_show_masks_what_the_handler_calls_secret_and_what_a_key_says(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JOBQ_DATABASE_URL", database_url)
    with engine.begin() as connection:
        marked = jobq.enqueue(connection, charge, card=CANARY, to="ada").id
        many = jobq.enqueue_many(connection, charge, [charge.args(CANARY, to="ada"), {"card": CANARY, "to": "bob"}])
        by_select = sa.select(sa.literal(CANARY).label("card"), sa.literal("eve").label("to"))
        jobq.enqueue_select(connection, charge, by_select)
        deep = add_job(connection, args={"to": "ada", "auth": [{"API-Key": CANARY}]}, meta={"authorization": CANARY})
        ids = list(connection.scalars(sa.select(jobs.c.id)))

    for id_ in ids:
        assert run(["show", str(id_)]) == run(["show", str(id_), "--json"]) == 0

    out = capsys.readouterr().out
    assert {marked, deep, many[0].id} <= set(ids)
    assert len(ids) == 5
    assert CANARY not in out
    assert out.count('"card": "***"') == 8
    assert out.count("ada") == 6


def test_a_filter_on_a_secret_is_in_no_log(
    connection: sa.Connection, monkeypatch: pytest.MonkeyPatch, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="jobq.audit")
    monkeypatch.setenv("JOBQ_DATABASE_URL", database_url)
    add_job(connection, args={"auth": {"password": CANARY}, "to": "ada"})

    assert run(["cancel", "--yes", "--arg", f"auth.password={CANARY}", "--arg", "to=ada"]) == 0

    assert "arg auth.password=***, arg to=ada" in caplog.text
    assert CANARY not in caplog.text


@pytest.mark.parametrize(("kind", "shown"), [((), "***"), (("--kind", "charge"), "***"), (("--kind", "other"), CANARY)])
def test_a_filter_on_what_a_handler_calls_secret_is_in_no_log_either(
    kind: tuple[str, ...], shown: str, connection: sa.Connection, monkeypatch: pytest.MonkeyPatch, database_url: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level("INFO", logger="jobq.audit")
    monkeypatch.setenv("JOBQ_DATABASE_URL", database_url)
    publish(connection, [Published.of(charge)], [])
    add_job(connection, kind=kind[-1] if kind else "charge", args={"card": CANARY, "to": "ada"})

    assert run(["cancel", "--yes", *kind, "--arg", f"card={CANARY}", "--arg", "to=ada"]) == 0

    assert f"arg card={shown}, arg to=ada" in caplog.text


def test_f69_check_tells_of_waiting_rows_without_their_values(
    connection: sa.Connection, monkeypatch: pytest.MonkeyPatch, database_url: str, capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setenv("JOBQ_DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "secretive_shop.py").write_text(APP)
    add_job(connection, kind="charge", args={"card": [CANARY], "to": "ada"})

    codes = [run(["check", "secretive_shop:app", *more]) for more in ([], ["--json"])]

    said = "".join(capsys.readouterr())
    assert codes == [1, 1]
    assert "args.card: expected str, got list (a secret: the value is not shown)" in said
    assert CANARY not in said
    assert all(json.loads(line) for line in said.splitlines() if line.startswith("{"))
