"""Names, filters and texts from outside reach SQL as values alone, or are refused before any SQL is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import add_job
from hostile_texts import TEXTS
from sqlalchemy import event

import jobq
from jobq.errors import JobqError, UnknownScheduleError
from jobq.tables import all_jobs, finished_jobs, jobs
from jobq_cli.app import run

HOUR = timedelta(hours=1)
CALLS: dict[str, Callable[[sa.Connection, str], Any]] = {
    "kind": lambda c, text: jobq.enqueue(c, jobq.kind(text, queue="q")),
    "queue of a kind": lambda c, text: jobq.enqueue(c, jobq.kind("k", queue=text)),
    "queue option": lambda c, text: jobq.enqueue(c, jobq.kind("k", queue="q").options(queue=text)),
    "unique key": lambda c, text: jobq.enqueue(c, jobq.kind("k", queue="q").options(unique_key=text)),
    "unique names": lambda c, text: jobq.enqueue(c, jobq.kind("k", queue="q").options(unique=(text,)), x=1),
    "args": lambda c, text: jobq.enqueue(c, jobq.kind("k", queue="q"), **{text: text}),
    "many": lambda c, text: jobq.enqueue_many(c, jobq.kind("k", queue="q"), [{"x": text}, {text: 1}]),
    "pause": lambda c, text: jobq.pause(c, text, HOUR),
    "reason": lambda c, text: jobq.pause(c, "q", HOUR, reason=text),
    "resume": lambda c, text: jobq.resume(c, text),
    "set_queue": lambda c, text: jobq.set_queue(c, text, weight=2),
    "predicate": lambda c, text: jobq.jobs(c, all_jobs.c.queue == text),
    "predicate on args": lambda c, text: jobq.jobs(c, all_jobs.c.args[text].astext == text),
    "retry": lambda c, text: jobq.retry(c, finished_jobs.c.kind == text),
    "cancel": lambda c, text: jobq.cancel(c, jobs.c.unique_key == text),
    "recent": lambda c, text: jobq.recent(c, jobq.kind("k", queue="q").args(x=text), within=HOUR),
    "run_schedule": lambda c, text: jobq.run_schedule(c, text),
}
COMMANDS = {
    "list --queue": ["list", "--queue"],
    "list --kind": ["list", "--kind"],
    "list --arg": ["list", "--arg"],
    "list --error": ["list", "--error"],
    "list --state": ["list", "--state"],
    "list --order": ["list", "--order"],
    "list --older": ["list", "--older"],
    "retry --queue": ["retry", "--yes", "--queue"],
    "cancel --arg": ["cancel", "--yes", "--arg"],
    "pause": ["pause", "--for", "1h"],
    "resume": ["resume"],
    "queue set": ["queue", "set", "--weight", "2"],
    "top --queue": ["top", "--once", "--queue"],
    "schedules run": ["schedules", "run"],
    "show": ["show"],
}


class Watched:
    """The SQL texts that were sent."""

    def __init__(self, engine: sa.Engine) -> None:
        self.texts: list[str] = []
        event.listen(engine, "before_cursor_execute", self._note)

    def _note(self, connection: Any, cursor: Any, sql: str, *_: Any) -> None:
        self.texts.append(sql)


@pytest.fixture
def watched(shared_engine: sa.Engine) -> Iterator[Watched]:
    watched = Watched(shared_engine)
    yield watched
    event.remove(shared_engine, "before_cursor_execute", watched._note)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_text_from_outside_is_a_value_or_refused_by_jobq_itself(
    connection: sa.Connection, watched: Watched, call: Callable[[sa.Connection, str], Any], text: str
) -> None:
    add_job(connection, queue="other", args={"x": 1})
    before = len(watched.texts)

    refused = refusal_of(call, connection, text)

    sent = watched.texts[before:]
    assert not refused or not sent or isinstance(refused, UnknownScheduleError)  # that one is looked for
    assert len(str(refused)) < 1_000
    assert not [sql for sql in sent if text in sql]
    assert connection.scalar(sa.select(sa.func.count()).select_from(jobs).where(jobs.c.queue == "other")) == 1


def refusal_of(call: Callable[[sa.Connection, str], Any], connection: sa.Connection, text: str) -> JobqError | None:
    """What jobq says to it; whatever the database raises passes."""
    try:
        call(connection, text)
    except JobqError as error:
        return error
    return None


@pytest.fixture
def database(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch, database_url: str) -> sa.Engine:
    monkeypatch.setenv("JOBQ_DATABASE_URL", database_url)
    with engine.begin() as connection:
        add_job(connection, queue="other", args={"x": 1})
    return engine


def test_a_command_takes_any_text_for_a_value_or_for_wrong_usage(
    database: sa.Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = {
        (command, name): run([*words, text[:5_000]])
        for command, words in COMMANDS.items()
        for name, text in TEXTS.items()
    }

    out, err = capsys.readouterr()
    assert set(codes.values()) <= {0, 1, 2}
    assert "Traceback" not in out + err
    with database.connect() as connection:
        assert connection.scalars(sa.select(jobs.c.queue)).all() == ["other"]
        assert connection.scalar(sa.select(sa.func.count()).select_from(finished_jobs)) == 0
