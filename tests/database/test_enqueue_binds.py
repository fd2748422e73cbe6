"""What a job can be enqueued on: sessions and connections of all kinds; what is refused, with the way to do it."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from jobq.errors import AutocommitError, BindError, OptionTypeError
from jobq.notify import channel_of
from jobq.producer import enqueue
from jobq.registry import App
from jobq.tables import jobs

app = App()
things = sa.Table("things", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True))


@app.handler("email.send")
def send_email(to: str) -> None: ...


def count(connection: sa.Connection | Session) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(jobs)).scalar_one()


def test_sessions_of_all_kinds_are_taken(engine: sa.Engine) -> None:
    scoped = scoped_session(sessionmaker(engine))
    enqueue(scoped, send_email, "a")
    assert count(scoped()) == 1
    scoped.remove()

    with engine.begin() as connection:
        enqueue(connection, send_email, "a")
        assert count(connection) == 1


def test_of_a_session_with_several_engines_that_for_our_tables_is_taken(engine: sa.Engine) -> None:
    elsewhere = sa.create_engine("postgresql+psycopg://nobody@nowhere.invalid/nothing")
    with Session(binds={things: elsewhere, jobs: engine}) as session:
        assert enqueue(session, send_email, "a").created
    with Session(binds={things: elsewhere}) as session, pytest.raises(BindError, match=r"jobq\.tables\.jobs"):
        enqueue(session, send_email, "a")


def test_another_schema_has_its_own_jobs_and_channel(engine: sa.Engine) -> None:
    with engine.connect() as plain:
        connection = plain.execution_options(schema_translate_map={"jobq": "Other"})
        connection.execute(sa.schema.CreateSchema("Other"))
        jobs.create(connection)
        enqueue(connection, send_email, "a")

        assert channel_of(connection) == "Other"
        assert connection.execute(sa.text('SELECT count(*) FROM "Other".jobs')).scalar_one() == 1
        assert connection.execute(sa.text("SELECT count(*) FROM jobq.jobs")).scalar_one() == 0


def test_a7_an_autocommit_engine_is_refused(engine: sa.Engine) -> None:
    with Session(engine.execution_options(isolation_level="AUTOCOMMIT")) as session:
        with pytest.raises(AutocommitError, match="no transaction to join and a rollback would keep"):
            enqueue(session, send_email, "a")
        assert count(session) == 0


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "pg8000"])
def test_a7_autocommit_is_seen_however_and_with_whichever_driver_it_was_set(database_url: str, driver: str) -> None:
    url = sa.make_url(database_url).set(drivername=f"postgresql+{driver}")
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, pytest.raises(AutocommitError):
        enqueue(connection, send_email, "a")
    with engine.connect().execution_options(isolation_level="READ COMMITTED") as connection:
        assert enqueue(connection, send_email, "a").created
    engine.dispose()


def test_an_engine_is_refused_with_the_way_to_do_it(engine: sa.Engine) -> None:
    wrong: Any = engine
    with pytest.raises(BindError, match=r"with engine\.begin\(\) as connection"):
        enqueue(wrong, send_email, "a")


def test_f53_async_sessions_are_refused_with_the_name_of_the_other_function(database_url: str) -> None:
    async_engine = create_async_engine(database_url)
    for wrong in (AsyncSession(async_engine), AsyncConnection(async_engine)):
        given: Any = wrong
        with pytest.raises(BindError, match="use enqueue_async"):
            enqueue(given, send_email, "a")
    given = async_engine
    with pytest.raises(BindError, match=r"async with engine\.begin\(\)"):
        enqueue(given, send_email, "a")


@pytest.mark.parametrize("wrong", [None, "session", sessionmaker(), object()], ids=["None", "str", "factory", "object"])
def test_what_is_no_session_is_refused(wrong: Any) -> None:
    with pytest.raises(BindError, match="enqueue takes a Session"):
        enqueue(wrong, send_email, "a")


@pytest.mark.parametrize("wrong", ["email.send", len, None], ids=["a name", "a function", "None"])
def test_what_is_no_handler_is_refused(connection: sa.Connection, wrong: Any) -> None:
    with pytest.raises(OptionTypeError, match=r"handler: expected a function with @app\.handler"):
        enqueue(connection, wrong, to="a")
