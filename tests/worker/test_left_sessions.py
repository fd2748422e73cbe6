"""Plain handlers that use a `scoped_session`, which is local to their thread, and do not clean up."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from time import sleep
from typing import TypeAlias

import pytest
import sqlalchemy as sa
from bench import Bench
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session, sessionmaker

import jobq
from jobq.model import State

pytestmark = pytest.mark.anyio
Sessions: TypeAlias = "scoped_session[Session]"


class Base(DeclarativeBase): ...


class Note(Base):
    __tablename__ = "notes"
    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str]


def abort(sessions: Sessions) -> None:
    with suppress(sa.exc.DBAPIError):
        sessions.execute(sa.text("SELECT 1/0"))


def abort_in_savepoint(sessions: Sessions) -> None:
    sessions.begin_nested()
    abort(sessions)


def flush(sessions: Sessions) -> None:
    sessions.add(Note(text="flushed"))
    sessions.flush()


def add_and_fail(sessions: Sessions) -> None:
    sessions.add(Note(text="added"))
    raise ValueError("before the flush")


def read(sessions: Sessions) -> None:
    sessions.scalars(sa.select(Note)).all()


@contextmanager
def sessions_on(bench: Bench, **options: object) -> Iterator[Sessions]:
    """One connection: whatever a job keeps, the next one lacks."""
    engine = sa.create_engine(bench.url, pool_size=1, max_overflow=0, pool_timeout=5)
    Base.metadata.create_all(bench.engine)
    sessions = scoped_session(sessionmaker(engine, **options))  # type: ignore[call-overload]
    yield sessions
    sessions.remove()
    engine.dispose()


@pytest.mark.parametrize("leave", [abort, abort_in_savepoint, flush, add_and_fail, read])
@pytest.mark.parametrize("final", [False, True], ids=["close resets", "close is final"])
async def test_f36_a_session_that_a_thread_keeps_does_not_reach_its_next_job(
    bench: Bench, app: jobq.App, leave: Callable[[Sessions], None], final: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jobq")
    with sessions_on(bench, close_resets_only=not final) as sessions:

        @app.handler("first", max_attempts=1)
        def first() -> None:
            leave(sessions)

        @app.handler("second", max_attempts=1)
        def second() -> None:
            sessions.add(Note(text="second"))
            sessions.commit()

        async with bench.working(app, concurrency=1):
            left = await bench.until(bench.enqueue(first))
            wrote = await bench.until(bench.enqueue(second))

    assert left.state is (State.DEAD if leave is add_and_fail else State.DONE)
    assert (wrote.state, wrote.errors) == (State.DONE, ())
    assert [row.text for row in bench.execute("SELECT text FROM notes")] == ["second"]
    said = [record.getMessage() for record in caplog.records if "left a session open" in record.getMessage()]
    assert said == [f"job {left.id} (first): its handler left a session open; what it had not committed is rolled back"]


async def test_f36_what_a_handler_that_outlives_its_timeout_left_open_is_rolled_back_when_it_ends(
    bench: Bench, app: jobq.App
) -> None:
    with sessions_on(bench) as sessions:

        @app.handler("first", max_attempts=1, timeout=timedelta(milliseconds=50))
        def first() -> None:
            flush(sessions)
            while not jobq.current().cancelled:
                sleep(0.01)

        @app.handler("second", max_attempts=1)
        def second() -> None:
            sessions.add(Note(text="second"))
            sessions.commit()

        async with bench.working(app, concurrency=1):
            left = await bench.until(bench.enqueue(first))
            wrote = await bench.until(bench.enqueue(second))

    assert (left.state, wrote.state) == (State.DEAD, State.DONE)
    assert [row.text for row in bench.execute("SELECT text FROM notes")] == ["second"]


async def test_a_session_that_was_committed_is_left_alone(
    bench: Bench, app: jobq.App, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jobq")
    with sessions_on(bench) as sessions:

        @app.handler("k", max_attempts=1)
        def handler(text: str) -> None:
            sessions.add(Note(text=text))
            sessions.commit()

        async with bench.working(app, concurrency=1):
            ended = [await bench.until(bench.enqueue(handler, text=text)) for text in ("a", "b")]

    assert {job.state for job in ended} == {State.DONE}
    assert not any("left a session open" in record.getMessage() for record in caplog.records)
