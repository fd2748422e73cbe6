"""What a command prints of rows that are full of control characters: nothing that a terminal or a log obeys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from hostile_texts import RAW, TEXTS
from terminal import on_a_terminal

from jobq.tables import finished_jobs, jobs, kinds, queues, schedules, slots, workers
from jobq_cli.app import run

NOW = sa.func.now()
DAY = timedelta(days=1)
WORKER = 7
TEXT = " ".join(text for name, text in TEXTS.items() if name != "long")
LONG = TEXT + "x" * 20_000
ERROR = {
    "attempt": 1,
    "at": "2026-01-01T00:00:00+00:00",
    "worker": TEXT,
    "error": TEXT,
    "message": LONG,
    "traceback": LONG,
}
META = {"progress": {"fraction": 0.5, "message": TEXT, "attempt": 1}, "checkpoint": {TEXT: TEXT}, TEXT: TEXT}
COMMON: dict[str, Any] = {
    "args": {TEXT: [TEXT, {"x": LONG}]}, "meta": META, "errors": [ERROR], "callsite": TEXT, "attempted_at": NOW,
    "attempt": 1,
}  # fmt: skip
COMMANDS = [
    *("list", "show 1", "show 2", "show 3", "why 1", "why 2", "why 3", "stats", "workers", "top --once", "health"),
    *("schedules", "queue list", "retry 2", "cancel 2", "list --error x", "list --queue nothing", "show 99"),
]


@pytest.fixture
def rows(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch, database_url: str) -> Iterator[sa.Connection]:
    """Every text of every table as somebody's own SQL can write it; what CHECKs hold is dropped first."""
    monkeypatch.setenv("JOBQ_DATABASE_URL", database_url)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in (jobs, queues):
            for check in connection.dialect.get_check_constraints(connection, table.name, schema="jobq"):  # type: ignore[no-untyped-call]
                connection.exec_driver_sql(f'ALTER TABLE jobq.{table.name} DROP CONSTRAINT "{check["name"]}"')
        _fill(connection)
        yield connection


def _fill(connection: sa.Connection) -> None:
    short = TEXT[:200]
    insert = connection.execute
    insert(sa.insert(workers).values(
        id=WORKER, name=TEXT, hostname=TEXT, version=TEXT, queues=[TEXT], kinds=[short], schedules=[TEXT],
        lease=DAY, lease_until=NOW + DAY, concurrency=1,
    ))  # fmt: skip
    insert(sa.insert(jobs).values(id=1, queue=short, kind=short, **COMMON))
    insert(sa.insert(jobs).values(id=2, queue=short, kind=short, worker_id=WORKER, unique_key=short, **COMMON))
    insert(sa.insert(finished_jobs).values(
        id=3, queue=TEXT, kind=TEXT, priority=1, run_at=NOW, failures=1, created_at=NOW, expires_at=NOW + DAY,
        state="dead", outcome=f"err: {LONG}", result={TEXT: TEXT}, **COMMON,
    ))  # fmt: skip
    insert(sa.insert(queues).values(name=short, paused_at=NOW, paused_until=NOW + DAY, pause_reason=TEXT, fifo=True))
    insert(sa.insert(slots).values(queue=short, n=1))
    insert(sa.insert(kinds).values(kind=short, queue=short, max_attempts=1))
    insert(sa.insert(schedules).values(
        name=TEXT, kind=TEXT, form="cron", expression=TEXT, job={"args": {TEXT: TEXT}, "queue": TEXT},
    ))  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_raw_is_printed(rows: sa.Connection, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command.split()) in (0, 1)

    out, err = capsys.readouterr()
    assert out + err
    assert RAW.findall(out + err) == []
    assert "forged" not in {line[:6] for line in (out + err).split("\n")}
    assert not [line for line in (out + err).split("\n") if line.startswith("2026-01-01 00:00:00.000Z ERROR forged")]


@pytest.mark.parametrize(
    "command", ["list", "show 3", "why 1", "stats", "workers", "top --once", "health", "schedules"]
)
def test_json_is_ascii_with_one_object_a_line(
    rows: sa.Connection, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command.split(), "--json"]) in (0, 1)

    out = capsys.readouterr().out
    assert out.isascii()
    assert RAW.findall(out) == []
    assert all(isinstance(json.loads(line), dict) for line in out.splitlines())


@pytest.mark.parametrize("command", ["list", "show 3", "stats", "workers", "top --once"])
def test_on_a_terminal_only_jobq_itself_moves_the_cursor(rows: sa.Connection, command: str) -> None:
    _, written = on_a_terminal(*command.split())

    assert "\x1b[2J\x1b[31mred" not in written
    assert "\x1b]0;title" not in written
    assert "\x1b]8;;" not in written
    assert not set("\x9b\x9d\x90\u202e\u2066\u200f\u2028\x08\x7f") & set(written)
