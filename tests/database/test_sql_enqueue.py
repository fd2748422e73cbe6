"""The SQL function `jobq.enqueue`: the rules of the function in Python, for triggers, psql and other languages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jobq
from jobq import schema
from jobq.notify import parse
from jobq.store.leasing import Published, publish
from jobq.tables import jobs

app = jobq.App()
LATER = datetime(2130, 6, 1, 10, tzinfo=UTC)
HOSTILE = "é\"'\\ %s %(a)s :b $1 $$ {c} ?; DROP TABLE jobq.jobs; -- \u2028"


@app.handler("email.send", queue="email", max_attempts=8, priority=0)
def send_email(to: str, subject: str = "Hello") -> None: ...


@app.handler("user.sync", unique=True)
def sync(user_id: int, what: dict[str, Any] | None = None) -> None: ...


@app.handler("report", unique=("company_id", "month"))
def report(company_id: int, month: int = 1, lang: str = "en") -> None: ...


def publish_all(connection: sa.Connection) -> None:
    """What a worker says of its handlers when it starts."""
    publish(connection, map(Published.of, app.handlers.values()), [])


def call(connection: sa.Connection, kind: str | None, args: Any = None, **options: Any) -> int:
    """`SELECT jobq.enqueue(...)` by a driver that knows nothing of jobq."""
    given = {"kind": kind, **({} if args is None else {"args": json.dumps(args)}), **options}
    types = {"kind": "text", "args": "jsonb", "run_at": "timestamptz", "priority": "int"}
    named = ", ".join(f"{name} => CAST(:{name} AS {types.get(name, 'text')})" for name in given)
    return int(connection.execute(sa.text(f"SELECT jobq.enqueue({named})"), given).scalar_one())


def rows(connection: sa.Connection) -> list[sa.Row[Any]]:
    return list(connection.execute(sa.select(jobs).order_by(jobs.c.id)))


def row(connection: sa.Connection) -> sa.Row[Any]:
    (only,) = rows(connection)
    return only


def refused(connection: sa.Connection, *args: Any, **options: Any) -> Any:
    """What the server says of a call; the transaction goes on behind a savepoint."""
    with pytest.raises(sa.exc.DBAPIError) as caught, connection.begin_nested():
        call(connection, *args, **options)
    return caught.value.orig.diag  # type: ignore[union-attr]


@pytest.fixture
def listening(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("LISTEN jobq")
        yield connection


def test_a_row_is_the_one_that_python_enqueues(connection: sa.Connection) -> None:
    publish_all(connection)
    cases: list[tuple[jobq.Kind[...], dict[str, Any]]] = [
        (send_email, {"to": HOSTILE, "subject": "s"}),
        (sync.options(delay=timedelta(0)), {"user_id": 7, "what": {"b": 1, "aa": [None, 1.5]}}),
        (report, {"company_id": 1, "month": 2, "lang": "fr"}),
        (report, {"company_id": 9}),
    ]
    for handler, args in cases:
        jobq.enqueue(connection, handler, **args)
        mine = dict(row(connection)._mapping)
        connection.execute(sa.delete(jobs))
        call(connection, handler.kind, args)
        theirs = dict(row(connection)._mapping)
        connection.execute(sa.delete(jobs))

        other = {name for name in mine if mine[name] != theirs[name]}
        assert other == {"id", "callsite"}
        assert theirs["callsite"] is None


def test_what_is_given_counts_more_than_what_the_handler_says(connection: sa.Connection) -> None:
    publish_all(connection)

    given = call(connection, "user.sync", {"user_id": 7}, queue="slow", run_at=LATER, priority=3, unique_key=HOSTILE)

    stored = row(connection)
    assert (stored.id, stored.queue, stored.run_at, stored.priority) == (given, "slow", LATER, 3)
    assert (stored.unique_key, stored.max_attempts, stored.meta) == (HOSTILE, 5, {})


def test_a_kind_that_no_worker_has_published_takes_the_defaults(connection: sa.Connection) -> None:
    connection.exec_driver_sql("SELECT jobq.enqueue('any.kind')")

    stored = row(connection)
    assert (stored.queue, stored.priority, stored.max_attempts, stored.unique_key) == ("default", 1, None, None)
    assert (stored.args, stored.run_at, stored.attempt) == ({}, stored.created_at, 0)


def test_arguments_by_position_stand_in_this_order(connection: sa.Connection) -> None:
    connection.exec_driver_sql("SELECT jobq.enqueue('k', '{\"n\": 1}', 'q', '2130-01-01Z', 2, 'key')")

    stored = row(connection)
    assert (stored.kind, stored.args, stored.queue) == ("k", {"n": 1}, "q")
    assert (stored.run_at, stored.priority, stored.unique_key) == (datetime(2130, 1, 1, tzinfo=UTC), 2, "key")


@pytest.mark.parametrize("past", ["2001-01-01Z", "-infinity", "0044-03-15 BC"])
def test_a_time_in_the_past_is_now(connection: sa.Connection, past: str) -> None:
    call(connection, "k", run_at=past)
    assert row(connection).run_at == row(connection).created_at


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": None}, "enqueue: kind NULL is no name of a kind"),
        ({"kind": ""}, "enqueue: kind '' is no name of a kind"),
        ({"kind": "k\n"}, "enqueue: kind E'k\\n'|'k\n' is no name of a kind"),
        ({"kind": "x'; DROP TABLE jobs; --"}, "enqueue: kind 'x''; DROP TABLE jobs; --' is no name"),
        ({"kind": "k" * 64}, "is no name of a kind"),
        ({"queue": "a|b"}, "enqueue: queue 'a|b' is no name of a queue"),
        ({"queue": ""}, "enqueue: queue '' is no name of a queue"),
        ({"args": [1]}, "enqueue: args must be a JSON object, not array"),
        ({"args": "secret"}, "enqueue: args must be a JSON object, not string"),
        ({"args": {"secret": "x" * 2**20}}, "enqueue: args have more than 1,048,576 bytes"),
        ({"priority": 4}, "enqueue: priority 4 is not from 0 to 3"),
        ({"priority": -(2**31)}, "enqueue: priority -2147483648 is not from 0 to 3"),
        ({"run_at": "infinity"}, "enqueue: run_at must be before the year 9000"),
        ({"run_at": "9000-01-01Z"}, "enqueue: run_at must be before the year 9000"),
        ({"unique_key": ""}, "enqueue: unique_key has 0 bytes"),
        ({"unique_key": "ä" * 101}, "enqueue: unique_key has 202 bytes"),
    ],
    ids=str,
)
def test_what_cannot_be_a_job_is_said_with_the_way_out(
    connection: sa.Connection, wrong: dict[str, Any], message: str
) -> None:
    said = refused(connection, **{"kind": "k", **wrong})

    assert said.sqlstate == "22023"
    assert any(part in said.message_primary for part in message.split("|", 1 if "\n" in message else 0))
    assert said.message_hint
    assert "secret" not in said.message_primary
    assert rows(connection) == []


def test_args_that_are_null_are_refused_and_not_taken_for_none(connection: sa.Connection) -> None:
    for null in ("NULL", "'null'"):
        with pytest.raises(sa.exc.DBAPIError, match="args must be a JSON object"), connection.begin_nested():
            connection.exec_driver_sql(f"SELECT jobq.enqueue('k', {null})")


def test_a_held_key_gives_the_holders_id(connection: sa.Connection) -> None:
    publish_all(connection)
    given = jobq.enqueue(connection, sync, 7)
    named = jobq.enqueue(connection, send_email.options(unique_key="k"), "a")

    assert call(connection, "user.sync", {"user_id": 7}) == given.id
    assert call(connection, "user.sync", {"user_id": 8}) not in (given.id, named.id)
    assert call(connection, "any", unique_key="k") == named.id
    connection.execute(sa.update(jobs).values(worker_id=7))
    assert call(connection, "any", unique_key="k") == named.id
    connection.execute(sa.delete(jobs))
    assert call(connection, "any", unique_key="k") != named.id


def test_a_key_of_arguments_that_were_not_passed_is_the_same_too(connection: sa.Connection) -> None:
    publish_all(connection)
    bare = jobq.kind("report", queue="q").options(unique=("company_id", "month"))

    mine = jobq.enqueue(connection, bare, lang="en")
    assert call(connection, "report", {"lang": "fr"}) == mine.id
    assert call(connection, "report", {"month": 1}) == jobq.enqueue(connection, bare, month=1).id != mine.id


KEY = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(-1e15, 1e15) | KEY,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(user_id=st.integers(), what=st.none() | st.dictionaries(KEY, VALUE, max_size=4))
def test_python_and_sql_derive_one_key(connection: sa.Connection, user_id: int, what: dict[str, Any] | None) -> None:
    with connection.begin_nested() as savepoint:
        publish_all(connection)
        mine = jobq.enqueue(connection, sync, user_id, what)
        assert call(connection, "user.sync", {"what": what, "user_id": user_id}) == mine.id
        savepoint.rollback()


def test_f10_of_ten_threads_at_once_one_creates_the_job(engine: sa.Engine) -> None:
    def one(n: int) -> int:
        with engine.begin() as connection:
            if n % 2:
                return jobq.enqueue(connection, jobq.kind("k", queue="default").options(unique_key="k"), n=n).id
            return call(connection, "k", {"n": n}, unique_key="k")

    with ThreadPoolExecutor(10) as threads:
        assert len(set(threads.map(one, range(60)))) == 1


@pytest.mark.parametrize("end", ["commit", "rollback", "end"])
def test_f11_the_one_that_waits_gets_the_id_or_the_key(engine: sa.Engine, end: str) -> None:
    def in_own_transaction() -> int:
        with engine.begin() as connection:
            return call(connection, "k", unique_key="k")

    with engine.connect() as first, ThreadPoolExecutor(1) as thread:
        mine = call(first, "k", unique_key="k")
        theirs: Future[int] = thread.submit(in_own_transaction)
        wait_until_blocked(engine)
        if end == "end":
            first.execute(sa.delete(jobs))
        first.rollback() if end == "rollback" else first.commit()
        assert (theirs.result(timeout=30) == mine) is (end == "commit")


def test_f11_a_key_taken_since_the_snapshot_is_the_databases_error(engine: sa.Engine) -> None:
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        rows(connection)
        with engine.begin() as other:
            call(other, "k", unique_key="k")
        with pytest.raises(sa.exc.OperationalError) as caught:
            call(connection, "k", unique_key="k")
    assert caught.value.orig.sqlstate == "40001"  # type: ignore[union-attr]


def test_a_key_that_never_stands_still_ends_in_a_clear_error(connection: sa.Connection) -> None:
    """A trigger ends each holder's job in the statement that looks for it: no row is inserted, and none is there."""
    connection.exec_driver_sql(
        "CREATE FUNCTION jobq.skip() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
        "CREATE TRIGGER skip BEFORE INSERT ON jobq.jobs FOR EACH ROW EXECUTE FUNCTION jobq.skip()"
    )
    said = refused(connection, "k", unique_key="k")
    assert said.message_primary == "enqueue: unique key 'k' was taken and freed again during each of 10 tries"
    assert (said.sqlstate, said.message_hint) == ("23505", "enqueue once more")


ORDERS = """
CREATE TABLE orders (id int PRIMARY KEY, email text);
CREATE FUNCTION order_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM jobq.enqueue('email.send', jsonb_build_object('to', NEW.email, 'subject', 'order ' || NEW.id));
    RETURN NULL;
END $$;
CREATE TRIGGER jobs AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION order_jobs();
"""


def test_a_trigger_makes_a_job_for_each_row_and_none_when_they_roll_back(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(ORDERS)
        publish_all(connection)
    order = sa.text("INSERT INTO orders SELECT n, :email FROM generate_series(CAST(:first AS int), :last) AS n")
    with engine.begin() as connection:
        connection.execute(order, {"email": HOSTILE, "first": 1, "last": 3})
        with pytest.raises(sa.exc.IntegrityError), connection.begin_nested():
            connection.execute(order, {"email": "again", "first": 3, "last": 5})
    with engine.connect() as connection:
        connection.execute(order, {"email": "never", "first": 10, "last": 20})
        connection.rollback()
        stored = rows(connection)

    assert [each.args for each in stored] == [{"to": HOSTILE, "subject": f"order {n}"} for n in (1, 2, 3)]
    assert {(each.queue, each.max_attempts, each.priority) for each in stored} == {("email", 8, 0)}
    assert {each.callsite for each in stored} == {"order_jobs() line 3 at PERFORM"}


def test_each_lane_of_a_transaction_is_told_of_once_and_in_the_words_of_python(
    engine: sa.Engine, listening: psycopg.Connection[Any]
) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("SELECT jobq.enqueue('k', queue => 'q') FROM generate_series(1, 1000)")
        connection.exec_driver_sql("SELECT jobq.enqueue('k', queue => 'q', priority => 0)")
        connection.exec_driver_sql("SELECT jobq.enqueue('k', run_at => now() + interval '1 hour')")
        due: datetime = connection.scalars(sa.select(sa.func.min(jobs.c.run_at))).one()
    heard = [parse(each) for each in payloads(listening)]
    assert heard == [jobq.model.Position("q", priority, due) for priority in (1, 0)]

    with engine.begin() as connection:
        connection.exec_driver_sql("SET LOCAL jobq.notify = off")
        call(connection, "k")
    with engine.connect() as connection:
        call(connection, "k")
        connection.rollback()
    assert payloads(listening) == []


def payloads(listening: psycopg.Connection[Any]) -> list[str]:
    listening.execute("SELECT 1")
    return [each.payload for each in listening.notifies(timeout=0)]


def test_a_search_path_changes_nothing(connection: sa.Connection) -> None:
    """Neither one without jobq, nor one whose first schema has functions and tables of the same names."""
    connection.exec_driver_sql(
        "CREATE SCHEMA trap; CREATE TABLE trap.jobs (id int); CREATE TABLE trap.kinds (kind text);"
        "CREATE FUNCTION trap.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '2001-01-01Z' $$;"
        "CREATE FUNCTION trap.pg_notify(text, text) RETURNS void LANGUAGE sql AS $$ SELECT 1/0 $$;"
        "CREATE FUNCTION trap.concat_ws(text, text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'x' || 1/0 $$;"
    )
    for path in ("trap, pg_catalog", "''"):
        connection.exec_driver_sql(f"SET LOCAL search_path = {path}")
        call(connection, "k", {"n": 1})
    assert len(rows(connection)) == 2


def test_who_may_not_insert_jobs_may_not_by_the_function(connection: sa.Connection) -> None:
    name = f"nobody_{connection.exec_driver_sql('SELECT pg_backend_pid()').scalar_one()}"
    connection.exec_driver_sql(f"CREATE ROLE {name}; GRANT USAGE ON SCHEMA jobq TO {name}; SET LOCAL ROLE {name}")
    assert refused(connection, "k").sqlstate == "42501"


@pytest.mark.parametrize("name", ["Other", "of \"quotes\" and 'more'"], ids=["other", "quoted"])
def test_in_another_schema_it_works_there_and_its_channel_is_named_so(empty_database_url: str, name: str) -> None:
    engine = sa.create_engine(empty_database_url, execution_options={"schema_translate_map": {"jobq": name}})
    schema.migrate(engine)
    quoted = name.replace('"', '""')
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f'LISTEN "{quoted}"')
        id_ = connection.exec_driver_sql(f"""SELECT "{quoted}".enqueue('k', unique_key => 'a')""").scalar_one()
        assert row(connection).id == id_
        driver: Any = connection.connection.driver_connection
        assert [each.channel for each in driver.notifies(timeout=0)] == [name]
        assert connection.exec_driver_sql("SELECT to_regnamespace('jobq')").scalar_one() is None
    engine.dispose()


def wait_until_blocked(engine: sa.Engine) -> None:
    """Until some transaction of this database waits for another: asked of the server, each time a round trip."""
    waiting = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while not connection.execute(waiting).scalar_one():
            connection.execute(sa.text("SELECT pg_sleep(0.01)"))
