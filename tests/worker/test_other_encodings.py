"""Databases whose encoding lacks letters that programs use: jobs say what they say, and the worker lives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa
from bench import Bench
from psycopg import sql

import jobq
from jobq import State

pytestmark = pytest.mark.anyio
WORDS = "Grüße, 日本 €"
ASCII = r"Gr\xfc\xdfe, \u65e5\u672c \u20ac"
REFUSED = "RuntimeError: the result could not be stored: SQLSTATE 22P05"


@pytest.fixture(params=["LATIN1", "SQL_ASCII"])
def elsewhere(request: pytest.FixtureRequest, server_url: str, admin: psycopg.Connection) -> Iterator[Bench]:
    """A database in another encoding, with connections of the test's own that speak UTF-8."""
    name = f"test_{uuid4().hex[:16]}"
    create = "CREATE DATABASE {} ENCODING {} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    admin.execute(sql.SQL(create).format(sql.Identifier(name), request.param))
    url = sa.make_url(server_url).set(database=name).render_as_string(hide_password=False)
    jobq.migrate(url)
    engine = sa.create_engine(url, connect_args={"client_encoding": "utf8"})
    yield Bench(url, engine)
    engine.dispose()
    admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def holds_all(elsewhere: Bench) -> bool:
    """SQL_ASCII keeps whatever bytes it is given."""
    return elsewhere.execute("SHOW server_encoding")[0][0] == "SQL_ASCII"


async def test_what_a_job_says_is_kept_or_told_in_ascii_and_the_worker_goes_on(
    elsewhere: Bench, app: jobq.App, holds_all: bool
) -> None:
    @app.handler("fails", max_attempts=1)
    async def fails() -> None:
        raise ValueError(WORDS)

    @app.handler("says", max_attempts=1)
    async def says() -> str:
        return WORDS

    @app.handler("gives", max_attempts=1)
    async def gives() -> Any:
        return jobq.Ok("fine", result={"word": WORDS})

    ids = [elsewhere.enqueue(each) for each in (fails, says, gives)]
    async with elsewhere.working(app):
        failed, said, gave = [await elsewhere.until(each) for each in ids]

    if holds_all:
        assert failed.outcome == f"err: ValueError: {WORDS}"
        assert said.outcome == f"ok: {WORDS}"
        assert gave.result == {"word": WORDS}
    else:
        assert failed.outcome == f"err: {REFUSED} (err: ValueError: {ASCII})"
        assert said.outcome == f"err: {REFUSED} (ok: {ASCII})"
        assert gave.outcome == f"err: {REFUSED} (ok: fine)"
        assert {failed.state, said.state, gave.state} == {State.DEAD}


async def test_what_a_job_reports_is_kept_or_left_out(elsewhere: Bench, app: jobq.App, holds_all: bool) -> None:
    @app.handler("k")
    async def handler() -> None:
        jobq.current().progress(0.5, WORDS)

    async with elsewhere.working(app):
        job = await elsewhere.until(elsewhere.enqueue(handler))

    assert job.state is State.DONE
    assert (job.progress is not None and job.progress.message == WORDS) is holds_all


async def test_a_pause_with_such_a_reason_is_no_end_of_the_worker(
    elsewhere: Bench, app: jobq.App, holds_all: bool
) -> None:
    @app.handler("k", max_attempts=1)
    async def handler() -> None:
        if jobq.current().job.attempt == 1:
            raise jobq.PauseQueue(timedelta(milliseconds=1), WORDS)

    @app.handler("other", queue="other")
    async def other() -> None: ...

    async with elsewhere.working(app):
        paused = await elsewhere.until(elsewhere.enqueue(handler))
        next_ = await elsewhere.until(elsewhere.enqueue(other))

    assert paused.outcome == (None if holds_all else f"err: {REFUSED}")
    assert next_.state is State.DONE


async def test_a_connection_that_the_engines_creator_made_speaks_utf_8_too(elsewhere: Bench, app: jobq.App) -> None:
    @app.handler("k", max_attempts=1)
    async def handler() -> str:
        return WORDS

    url = elsewhere.url.replace("+psycopg", "")
    theirs = sa.create_engine(
        elsewhere.url, creator=lambda: psycopg.connect(url, client_encoding="latin1"), poolclass=sa.NullPool
    )
    async with elsewhere.working(app, theirs):
        job = await elsewhere.until(elsewhere.enqueue(handler))

    assert job.outcome in (f"ok: {WORDS}", f"err: {REFUSED} (ok: {ASCII})")
