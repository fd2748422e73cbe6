"""Commands and whole worker processes behind a transaction pooler, and the application's own sessions."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from apps import long_at_first, nap
from board import Board
from fleet import fleet_on
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import jobq
from jobq.model import State
from jobq_cli.app import run

ROUNDS = 12  # more often than psycopg executes a statement before it prepares it


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command line: exit code, stdout, stderr."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([str(each) for each in arguments])
        return code, *capsys.readouterr()

    return call


@pytest.mark.slow
def test_the_jobs_of_a_killed_worker_are_rescued(board: Board, pooled_url: str, tmp_path: Path) -> None:
    with fleet_on(pooled_url, tmp_path, ledger_url=board.url) as fleet:
        options = {"lease": 2, "poll_interval": 0.1, "pooler": True}
        first = fleet.start(**options)
        held = board.enqueue(long_at_first)
        board.until_begun([held])
        first.kill()
        second = fleet.start(**options)
        board.until_ended([held])
        quick = board.enqueue_many(nap, [{"seconds": 0.01}] * 100)
        board.until_ended(quick)
        second.send(signal.SIGTERM)
        code = second.ends()

    job = board.job(held)
    assert (job.state, job.failures, job.errors[0].error, code) == (State.DONE, 1, "WorkerLost", 0)
    assert set(board.runs_of(quick).values()) == {1}
    assert second.count("prepared statement") == second.count("cannot be used") == 0


@pytest.mark.slow
@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_process_hears_of_jobs_at_the_servers_own_url(
    board: Board, pooled_url: str, tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"listen_url": board.url} if by == "option" else {}
    if by == "variable":
        monkeypatch.setenv("JOBQ_LISTEN_URL", board.url)
    with fleet_on(pooled_url, tmp_path, ledger_url=board.url) as fleet:
        worker = fleet.start(pooler=True, poll_interval=3600, **options)
        board.until_ended([board.enqueue(nap, seconds=0)])
        worker.send(signal.SIGTERM)
        code = worker.ends()

    assert (code, worker.count("nothing can be listened for"), worker.count("needs 6 connections")) == (0, 0, 1)


@pytest.mark.slow
def test_a_process_that_was_not_told_of_the_pooler_says_what_to_do_in_one_line(
    board: Board, pooled_url: str, tmp_path: Path
) -> None:
    with fleet_on(pooled_url, tmp_path, ledger_url=board.url) as fleet:
        member = fleet.start(is_ready=False)
        code = member.ends()

    assert code == 1
    assert "error: a pooler stands between the worker and the server: start it with --pooler" in member.said
    assert "Traceback" not in member.said


def test_every_command_works_behind_a_pooler(
    board: Board, pooled_url: str, command: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBQ_DATABASE_URL", pooled_url)
    ids = board.enqueue_many(nap, [{"seconds": 1}] * 3)

    for _ in range(3):
        for words in ("stats", "list", f"show {ids[0]}", "workers", "migrate", "stats --json"):
            code, _, err = command(*words.split())
            assert (code, words) == (0, words), err
    codes = [command("cancel", ids[1])[0], command("retry", ids[1])[0], command("cancel", "--kind", "nap", "--yes")[0]]

    assert codes == [0, 0, 0]
    assert {board.job(id_).state for id_ in ids} == {State.CANCELLED}


def test_the_tables_are_made_through_a_pooler(
    empty_pooled_url: str, command: Callable[..., tuple[int, str, str]]
) -> None:
    url = "--database-url", empty_pooled_url

    assert [command("migrate", *url)[0], command("migrate", *url)[0], command("stats", *url)[0]] == [0, 0, 0]


def test_options_that_a_pooler_refuses_are_named_by_a_command(
    pooled_url: str, command: Callable[..., tuple[int, str, str]]
) -> None:
    code, out, err = command("stats", "--database-url", f"{pooled_url}?options=-c%20search_path%3Dpublic")

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "unsupported startup parameter: options: a pooler refuses `options`: take them out of the URL" in err


@pytest.mark.parametrize(
    ("driver", "arguments"),
    [
        pytest.param("psycopg", {"prepare_threshold": None}, id="psycopg"),
        pytest.param("psycopg2", {}, id="psycopg2"),
        pytest.param("pg8000", {}, id="pg8000"),
    ],
)
def test_an_application_enqueues_through_a_pooler(
    board: Board, pooled_url: str, driver: str, arguments: dict[str, Any]
) -> None:
    url = sa.make_url(pooled_url).set(drivername=f"postgresql+{driver}")
    engine = sa.create_engine(url, connect_args=arguments)
    for n in range(ROUNDS):
        with Session(engine) as one, Session(engine) as two:
            jobq.enqueue(one, nap, seconds=n)
            jobq.enqueue(two, nap.options(unique_key=f"k{n}"), seconds=n)
            two.rollback()
            one.commit()
    engine.dispose()

    assert board.one("SELECT count(*) FROM jobq.jobs WHERE unique_key IS NULL") == ROUNDS
    assert board.one("SELECT count(*) FROM jobq.jobs") == ROUNDS


@pytest.mark.anyio
async def test_an_application_enqueues_through_a_pooler_with_asyncpg(board: Board, pooled_url: str) -> None:
    url = sa.make_url(pooled_url).set(drivername="postgresql+asyncpg")
    named_anew = {"statement_cache_size": 0, "prepared_statement_name_func": lambda: f"p{uuid4().hex}"}
    engine = create_async_engine(url, connect_args=named_anew, poolclass=sa.NullPool)
    for n in range(ROUNDS):
        async with AsyncSession(engine) as one, AsyncSession(engine) as two:
            await jobq.enqueue_async(one, nap, seconds=n)
            await jobq.enqueue_async(two, nap.options(unique_key=f"k{n}"), seconds=n)
            await two.rollback()
            await one.commit()
    await engine.dispose()

    assert board.one("SELECT count(*) FROM jobq.jobs WHERE unique_key IS NULL") == ROUNDS
