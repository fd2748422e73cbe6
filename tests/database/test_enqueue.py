"""One job, in the caller's transaction: what is stored, what is refused, what a rollback leaves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import sqlalchemy as sa
from psycopg import Connection as Listener
from sqlalchemy import event
from sqlalchemy.orm import Session

from jobq import notify
from jobq.errors import ArgsError
from jobq.handlers import kind
from jobq.notify import TokenBucket, channel_for, parse
from jobq.producer import enqueue
from jobq.registry import App
from jobq.tables import jobs

pytestmark = pytest.mark.duty("enqueue")

app = App()
things = sa.Table("things", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True))
HOSTILE = ["x'; DROP TABLE jobs; --", '"; LISTEN y; --', "%s %(a)s {0}"]


@app.handler("email.send", queue="email", max_attempts=8, timeout=timedelta(seconds=30))
def send_email(to: str, subject: str = "Hello") -> None: ...


@pytest.fixture
def listener(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener[Any]]:
    """A connection that hears what is told of jobs in the test's own database, with all tokens there."""
    monkeypatch.setattr(notify._bucket, "_levels", {})
    with Listener.connect(database_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("LISTEN jobq")
        yield connection


def heard(listener: Listener[Any]) -> list[str]:
    """The payloads up to now: a round trip brings all that was committed before it."""
    listener.execute("NOTIFY jobq, 'end'")
    payloads: list[str] = []
    for notification in listener.notifies(timeout=10):
        if notification.payload == "end":
            return payloads
        payloads.append(notification.payload)
    raise AssertionError("the end was not heard")


def row_of(connection: sa.Connection, id: int) -> sa.Row[Any]:  # noqa: A002
    return connection.execute(sa.select(jobs).where(jobs.c.id == id)).one()


def count(connection: sa.Connection | Session) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(jobs)).scalar_one()


def test_a_job_is_stored_as_handler_and_arguments_say(connection: sa.Connection) -> None:
    given = enqueue(connection, send_email, "a@b.c")

    row = row_of(connection, given.id)
    assert given.created
    assert (row.queue, row.kind, row.args, row.priority, row.max_attempts) == (
        "email",
        "email.send",
        {"to": "a@b.c"},
        1,
        8,
    )
    assert (row.unique_key, row.worker_id, row.attempt, row.failures, row.meta, row.errors) == (
        None,
        None,
        0,
        0,
        {},
        [],
    )
    assert row.run_at == row.created_at
    assert row.callsite is not None
    assert row.callsite.startswith("tests/database/test_enqueue.py:")


def test_options_are_stored(connection: sa.Connection) -> None:
    options = send_email.options(
        queue="slow", priority=3, max_attempts=2, timeout=timedelta(seconds=5), keep=timedelta(hours=1)
    )
    row = row_of(connection, enqueue(connection, options, to="a").id)

    assert (row.queue, row.priority, row.max_attempts) == ("slow", 3, 2)
    assert row.meta == {"timeout": 5.0, "keep": 3600.0}


def test_a_bare_kind_leaves_the_attempts_to_the_handler(connection: sa.Connection) -> None:
    row = row_of(connection, enqueue(connection, kind("email.send", queue="email"), to="a").id)

    assert (row.kind, row.queue, row.max_attempts, row.args) == ("email.send", "email", None, {"to": "a"})


def test_a_delay_counts_by_the_clock_of_the_database(connection: sa.Connection) -> None:
    row = row_of(connection, enqueue(connection, send_email.options(delay=timedelta(days=1, microseconds=5)), "a").id)

    assert row.run_at - row.created_at == timedelta(days=1, microseconds=5)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_f37_an_aware_run_at_is_one_instant_in_any_session(connection: sa.Connection, zone: str) -> None:
    connection.execute(sa.text("SELECT set_config('TimeZone', :zone, true)"), {"zone": zone})
    instant = datetime(2130, 6, 1, 10, tzinfo=UTC)
    for run_at in (instant, instant.astimezone(timezone(timedelta(hours=2)))):
        row = row_of(connection, enqueue(connection, send_email.options(run_at=run_at), "a").id)
        assert row.run_at == instant
        assert row.run_at.tzinfo is not None


@pytest.mark.parametrize("run_at", [datetime(2000, 1, 1, tzinfo=UTC), datetime.min.replace(tzinfo=UTC)], ids=str)
def test_a_run_at_in_the_past_is_now(connection: sa.Connection, run_at: datetime) -> None:
    row = row_of(connection, enqueue(connection, send_email.options(run_at=run_at), "a").id)

    assert row.run_at == row.created_at


def test_a_rollback_leaves_nothing(engine: sa.Engine) -> None:
    with Session(engine) as session:
        enqueue(session, send_email, "a")
        assert count(session) == 1
        session.rollback()
        assert count(session) == 0


def test_f51_nobody_sees_the_job_or_hears_of_it_before_the_commit(engine: sa.Engine, listener: Listener[Any]) -> None:
    with Session(engine) as session, engine.connect() as other:
        enqueue(session, send_email, "a")
        assert session.in_transaction()
        assert count(other) == 0
        assert heard(listener) == []

        session.commit()
        assert count(other) == 1
        assert len(heard(listener)) == 1


def test_f51_a_savepoints_rollback_drops_its_job_only(engine: sa.Engine, listener: Listener[Any]) -> None:
    things.create(engine)
    with Session(engine) as session:
        session.execute(sa.insert(things).values(id=1))
        kept = enqueue(session, send_email, "kept")
        with session.begin_nested() as savepoint:
            enqueue(session, send_email, "dropped")
            savepoint.rollback()
        session.commit()

        assert session.scalars(sa.select(jobs.c.id)).all() == [kept.id]
        assert session.scalars(sa.select(things.c.id)).all() == [1]
        assert len(heard(listener)) == 1


def test_f51_a_rolled_back_savepoint_alone_tells_nobody(engine: sa.Engine, listener: Listener[Any]) -> None:
    with Session(engine) as session:
        with session.begin_nested() as savepoint:
            enqueue(session, send_email, "dropped")
            savepoint.rollback()
        session.commit()

    assert heard(listener) == []


@pytest.mark.parametrize("name", ["before_flush", "after_flush", "before_commit"])
def test_f52_a_session_event_can_enqueue(engine: sa.Engine, name: str) -> None:
    things.create(engine)
    registry = sa.orm.registry()

    class Thing:
        pass

    registry.map_imperatively(Thing, things)
    with Session(engine) as session:
        event.listen(session, name, lambda session, *_: enqueue(session, send_email, "a"), once=True)
        session.add(Thing())
        session.commit()

        assert count(session) == 1
        assert session.scalars(sa.select(sa.func.count()).select_from(things)).one() == 1
    registry.dispose()


def test_f52_after_the_commit_sqlalchemys_own_error_comes_through(engine: sa.Engine) -> None:
    with Session(engine) as session:
        event.listen(session, "after_commit", lambda session: enqueue(session, send_email, "a"), once=True)
        session.connection()
        with pytest.raises(sa.exc.InvalidRequestError, match="'committed' state"):
            session.commit()
    with engine.connect() as connection:
        assert count(connection) == 0


BAD_ARGS: list[tuple[dict[str, Any], str]] = [
    ({"to": "a\0b"}, "args.to"),
    ({"to": "\ud800"}, "args.to"),
    ({"to": 5}, "args.to"),
    ({"to": None}, "args.to"),
    ({"too": "a"}, "args.too"),
    ({"to": "a", "subject": b"x"}, "args.subject"),
    ({}, "args.to"),
]


@pytest.mark.parametrize(("args", "path"), BAD_ARGS, ids=ascii)
def test_f01_f02_f04_refused_arguments_leave_the_transaction_usable(
    engine: sa.Engine, args: dict[str, Any], path: str
) -> None:
    things.create(engine)
    with Session(engine) as session:
        session.execute(sa.insert(things).values(id=1))
        with pytest.raises(ArgsError) as caught:
            enqueue(session, send_email, **args)
        session.commit()

        assert caught.value.path == path
        assert session.scalars(sa.select(things.c.id)).all() == [1]
        assert count(session) == 0


def test_f01_six_plain_characters_are_no_nul(connection: sa.Connection) -> None:
    row = row_of(connection, enqueue(connection, send_email, "\\u0000").id)
    assert row.args == {"to": "\\u0000"}


def test_f06_a_mebibyte_of_text_is_enqueued_and_told_in_under_100_bytes(
    engine: sa.Engine, listener: Listener[Any]
) -> None:
    text = "é" * (2**19 - 100)
    with Session(engine) as session:
        given = enqueue(session, send_email.options(queue="q" * 63), text)
        session.commit()
        row = row_of(session.connection(), given.id)

    assert row.args == {"to": text}
    (payload,) = heard(listener)
    position = parse(payload)
    assert len(payload.encode()) < 100
    assert position is not None
    assert (position.queue, position.priority, position.run_at) == ("q" * 63, 1, row.run_at)


def test_f06_more_than_a_mebibyte_is_refused_before_any_sql(connection: sa.Connection) -> None:
    with pytest.raises(ArgsError):
        enqueue(connection, send_email, "x" * 2**20)
    assert count(connection) == 0


def test_a_scheduled_job_tells_nobody(engine: sa.Engine, listener: Listener[Any]) -> None:
    with engine.begin() as connection:
        enqueue(connection, send_email.options(delay=timedelta(hours=1)), "a")
        enqueue(connection, send_email.options(run_at=datetime(2130, 1, 1, tzinfo=UTC)), "a")

    assert heard(listener) == []


def test_f50_notifications_can_be_switched_off(
    engine: sa.Engine, listener: Listener[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBQ_NOTIFY", "0")
    with engine.begin() as connection:
        enqueue(connection, send_email, "a")
        enqueue(connection, send_email.options(unique_key="k"), "a")

    assert heard(listener) == []


def test_a_two_phase_transaction_tells_nobody_and_can_be_prepared(engine: sa.Engine, listener: Listener[Any]) -> None:
    with engine.connect() as connection, connection.begin_twophase() as transaction:
        assert channel_for(connection, ["q"]) is None
        enqueue(connection, send_email, "a")
        transaction.commit()  # without prepare, for which servers have to be set up

    with engine.connect() as connection:
        assert count(connection) == 1
    assert heard(listener) == []


def test_nobody_is_told_when_all_queues_have_used_up_their_tokens(connection: sa.Connection) -> None:
    bucket = TokenBucket(rate=0, burst=1)

    assert channel_for(connection, ["a"], bucket=bucket) == "jobq"
    assert channel_for(connection, ["a"], bucket=bucket) is None
    assert channel_for(connection, ["a", "b"], bucket=bucket) == "jobq"
    assert channel_for(connection, [], bucket=bucket) is None


@pytest.mark.parametrize("text", HOSTILE)
def test_f67_hostile_texts_are_plain_data(connection: sa.Connection, text: str) -> None:
    row = row_of(connection, enqueue(connection, send_email.options(unique_key=text), text, subject=text).id)

    assert row.args == {"to": text, "subject": text}
    assert row.unique_key == text


@pytest.mark.parametrize("unique_key", [None, "k"], ids=["plain", "keyed"])
def test_f69_an_error_of_the_database_shows_no_arguments(connection: sa.Connection, unique_key: str | None) -> None:
    connection.execute(sa.text("DROP TABLE jobq.jobs CASCADE"))
    with pytest.raises(sa.exc.ProgrammingError) as caught:
        enqueue(connection, send_email.options(unique_key=unique_key), "hunter2")

    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value)


def test_each_statement_is_compiled_once(engine: sa.Engine) -> None:
    hits: list[tuple[str, bool]] = []

    @event.listens_for(engine, "before_cursor_execute")
    def note(connection: Any, cursor: Any, sql: str, binds: Any, context: Any, many: bool) -> None:
        hits.append((sql, context.cache_hit.name == "CACHE_HIT"))

    with engine.begin() as connection:
        for n in range(3):
            enqueue(connection, send_email, f"a{n}")
            enqueue(connection, send_email.options(unique_key=f"k{n}", delay=timedelta(n)), f"a{n}")

    assert len({sql for sql, _ in hits}) == 2
    assert [hit for _, hit in hits] == [False, False, True, True, True, True]


def test_callsites_can_be_switched_off(connection: sa.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBQ_CALLSITE", "0")
    assert row_of(connection, enqueue(connection, send_email, "a").id).callsite is None
