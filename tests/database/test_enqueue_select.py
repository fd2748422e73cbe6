"""A job for each row of a SELECT: labels, types, options, keys, and what is refused with the transaction as it was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa
from psycopg import Connection as Listener
from select_rows import AWARE, LATER, handler_of, stored
from sqlalchemy import event
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session, sessionmaker

from jobq import notify
from jobq.errors import ArgsError, AutocommitError, BindError, OptionError, OptionTypeError, UniqueKeyError
from jobq.handlers import kind
from jobq.notify import parse
from jobq.producer import enqueue
from jobq.registry import App
from jobq.selection import enqueue_select

pytestmark = pytest.mark.duty("enqueue")

app = App()


class Base(DeclarativeBase): ...


class User(Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column("user_id", primary_key=True)
    email: Mapped[str]
    balance: Mapped[Decimal | None]
    trial_ends_at: Mapped[datetime | None] = mapped_column(AWARE)
    rank: Mapped[int | None]


@app.handler("email.send", queue="email", max_attempts=8)
def send_email(to: str, subject: str = "Hello") -> None: ...


@app.handler("user.sync", unique=True)
def sync(user_id: int) -> None: ...


@app.handler("user.bill")
def bill(user_id: int, balance: Decimal) -> None: ...


@app.handler("nothing")
def nothing() -> None: ...


@pytest.fixture
def users(session: Session) -> Session:
    """A session with three users in the database."""
    Base.metadata.create_all(session.connection())
    session.add_all(User(id=n, email=f"u{n}@x.y") for n in (1, 2, 3))
    session.flush()
    return session


def test_each_row_is_a_job_as_handler_and_labels_say(users: Session) -> None:
    select = sa.select(User.email.label("to"), sa.literal("Hi").label("subject")).order_by(User.id.desc())

    assert enqueue_select(users, send_email, select) == 3

    rows = stored(users)
    assert [row.args for row in rows] == [{"to": f"u{n}@x.y", "subject": "Hi"} for n in (3, 2, 1)]
    assert {(row.kind, row.queue, row.max_attempts, row.priority, row.unique_key) for row in rows} == {
        ("email.send", "email", 8, 1, None)
    }
    assert all(row.run_at == row.created_at and row.meta == {} for row in rows)
    assert all(row.callsite.startswith("tests/database/test_enqueue_select.py:") for row in rows)


def test_a_select_of_no_rows_inserts_none(users: Session) -> None:
    assert enqueue_select(users, send_email, sa.select(User.email.label("to")).where(User.id > 9)) == 0


@pytest.mark.parametrize(
    "select",
    [
        sa.union_all(sa.select(sa.literal("a").label("to")), sa.select(sa.literal("b"))),
        sa.text("SELECT unnest(ARRAY['a', 'b']) AS name").columns(sa.column("name", sa.Text)).subquery().select(),
        sa.select(sa.values(sa.column("to", sa.Text), name="v").data([("a",), ("b",)])),
        sa.select(sa.select(sa.literal("a").label("to")).cte("fresh").c.to.label("to")).union(
            sa.select(sa.literal("b"))
        ),
    ],
    ids=["union", "text", "values", "cte"],
)
def test_any_select_will_do(connection: sa.Connection, select: Any) -> None:
    if "name" in select.selected_columns:
        select = sa.select(select.subquery().c.name.label("to"))

    assert enqueue_select(connection, send_email, select) == 2
    assert [row.args["to"] for row in stored(connection)] == ["a", "b"]


def test_binds_that_a_select_names_keep_their_values(users: Session) -> None:
    chosen = sa.select(User.email.label("to")).where(User.email == sa.bindparam("chosen", "u2@x.y"))

    assert enqueue_select(users, send_email, chosen) == 1
    with pytest.raises(OptionError, match="select: its bind 'queue' has the name of one of jobq's, give it another"):
        enqueue_select(users, send_email, chosen.where(User.email != sa.bindparam("queue", "x")))


def test_a_handler_without_arguments_gets_none_and_one_with_many_gets_all(connection: sa.Connection) -> None:
    when = sa.select(sa.cast(LATER, AWARE).label("run_at"))
    assert enqueue_select(connection, nothing, when, options_from=("run_at",)) == 1
    many = kind("many", queue="q")
    assert enqueue_select(connection, many, sa.select(*[sa.literal(n).label(f"p{n}") for n in range(120)])) == 1

    first, second = stored(connection)
    assert (first.args, first.run_at) == ({}, LATER)
    assert second.args == {f"p{n}": n for n in range(120)}


LABELS: list[tuple[Any, str]] = [
    (sa.select(sa.literal("a").label("too")), r"args: unknown labels: too; missing: to \(label each column as its"),
    (sa.select(sa.literal("a").label("to"), sa.literal("a").label("x"), sa.literal(1).label("y")), "labels: x, y "),
    (sa.select(sa.literal("a").label("subject")), r"args: missing: to \("),
    (sa.select(sa.literal("a") + "b"), r"unknown labels: \(no label\); missing: to"),
    (sa.select(sa.column("to", sa.Text), sa.column("to", sa.Text).label("to")), "two columns are labelled to"),
    (sa.select(sa.literal("a").label("to"), sa.literal("b").label("to")), "the columns of the select: Label name to"),
]


@pytest.mark.parametrize(("select", "message"), LABELS, ids=["typo", "two", "missing", "none", "twice", "again"])
def test_labels_are_refused_before_any_sql(users: Session, sent: list[str], select: Any, message: str) -> None:
    with pytest.raises(ArgsError, match=message):
        enqueue_select(users, send_email, select)
    assert sent == []


def test_null_is_given_to_parameters_that_take_none(users: Session) -> None:
    select = sa.select(User.balance.label("x"))

    assert enqueue_select(users, handler_of(Decimal | None), select) == 3
    with pytest.raises(ArgsError, match=r"args\.balance: expected Decimal, got NULL, in 3 rows"):
        enqueue_select(users, bill, sa.select(User.id.label("user_id"), User.balance.label("balance")))


def test_args_over_the_limit_are_refused_as_by_enqueue(connection: sa.Connection) -> None:
    long = sa.select(sa.func.repeat("x", 2**20, type_=sa.Text).label("to"), sa.literal("s").label("subject"))
    with pytest.raises(ArgsError, match=r"args: more than 1,048,576 bytes of JSON, in 1 of the rows; nothing was"):
        enqueue_select(connection, send_email, long)
    assert stored(connection) == []


@pytest.mark.parametrize(("numbers", "fit"), [(6, True), (7, True), (8, False)])
def test_args_that_are_long_in_text_alone_are_measured_too(connection: sa.Connection, numbers: int, fit: bool) -> None:
    """Of as many digits as there can be, 131 072, and 16 bytes in jsonb: what is near the size that is not measured."""
    bare = kind("email.send", queue="email")
    numbers_as_text = sa.literal("[" + ",".join(["1e131071"] * numbers) + "]", sa.Text)
    longest = sa.cast(numbers_as_text, JSONB)

    if fit:
        assert enqueue_select(connection, bare, sa.select(longest.label("n"))) == 1
    else:
        with pytest.raises(ArgsError, match=r"args: more than 1,048,576 bytes of JSON"):
            enqueue_select(connection, bare, sa.select(longest.label("n")))


def test_a_bare_kind_takes_any_labels_and_values_as_jsonb_has_them(connection: sa.Connection) -> None:
    bare = kind("email.send", queue="email").options(priority=3)
    select = sa.select(sa.literal("a").label("any label"), sa.cast("1.50", sa.Numeric).label("n"))

    assert enqueue_select(connection, bare, select) == 1
    (row,) = stored(connection)
    assert (row.text, row.priority, row.max_attempts) == ('{"n": 1.50, "any label": "a"}', 3, None)


def test_options_of_the_call_are_those_of_every_row(users: Session) -> None:
    options = send_email.options(
        queue="slow", priority=3, max_attempts=2, delay=timedelta(hours=1), timeout=timedelta(seconds=5)
    )
    assert enqueue_select(users, options, sa.select(User.email.label("to"))) == 3

    for row in stored(users):
        assert (row.queue, row.priority, row.max_attempts, row.meta) == ("slow", 3, 2, {"timeout": 5.0})
        assert row.run_at - row.created_at == timedelta(hours=1)


def test_run_at_and_priority_may_be_the_rows_own(users: Session) -> None:
    first, second, third = users.scalars(sa.select(User).order_by(User.id))
    first.trial_ends_at, first.rank = LATER, 0
    second.trial_ends_at, second.rank = datetime(1999, 1, 1, tzinfo=UTC), 3
    third.trial_ends_at, third.rank = None, None
    select = sa.select(User.id.label("user_id"), User.trial_ends_at.label("run_at"), User.rank.label("priority"))

    both = sync.options(priority=2)
    assert enqueue_select(users, both, select.order_by(User.id), options_from=("run_at", "priority")) == 3

    rows = {row.args["user_id"]: row for row in stored(users)}
    assert all(set(row.args) == {"user_id"} for row in rows.values())
    assert [rows[n].priority for n in (1, 2, 3)] == [0, 3, 2]
    assert rows[1].run_at == LATER
    assert [rows[n].run_at == rows[n].created_at for n in (2, 3)] == [True, True]  # never before now


@pytest.mark.parametrize("priority", [-1, 4, 70_000])
def test_a_priority_out_of_range_is_refused_and_nothing_is_inserted(users: Session, priority: int) -> None:
    select = sa.select(User.email.label("to"), (User.id * 0 + priority).label("priority"))
    with pytest.raises(OptionError, match="priority: not from 0 to 3, in 3 rows of the select"):
        enqueue_select(users, send_email, select, options_from=["priority"])
    assert stored(users) == []


def test_a_run_at_beyond_the_last_year_is_refused(connection: sa.Connection) -> None:
    select = sa.select(sa.literal("a").label("to"), sa.cast("infinity", AWARE).label("run_at"))
    with pytest.raises(OptionError, match="run_at: not before the year 9000, in 1 row"):
        enqueue_select(connection, send_email, select, options_from=("run_at",))


WRONG_OPTIONS: list[tuple[Any, Any, Any, type[Exception], str]] = [
    (send_email, sa.Text(), ("queue",), OptionError, "options_from: 'run_at' or 'priority', got 'queue'"),
    (send_email, sa.Text(), "run_at", OptionTypeError, "options_from: expected a tuple of names, got the str"),
    (send_email, sa.Text(), ("run_at",), OptionTypeError, "run_at: expected a timestamp with time zone, got .* Text"),
    (send_email, sa.DateTime(), ("run_at",), OptionError, "run_at: a timestamp without time zone: say which"),
    (send_email, AWARE, ("priority",), OptionError, r"no column is labelled priority \(labels: to, run_at\)"),
    (send_email.options(delay=timedelta(1)), AWARE, ("run_at",), OptionError, "neither run_at= nor delay="),
    (send_email.options(unique_key="k"), AWARE, ("run_at",), OptionError, "unique_key: one key for all rows"),
]


@pytest.mark.parametrize(("handler", "type_", "names", "error", "message"), WRONG_OPTIONS, ids=lambda v: str(v)[:30])
def test_options_that_cannot_be_are_refused_before_any_sql(
    connection: sa.Connection, sent: list[str], handler: Any, type_: Any, names: Any, error: Any, message: str
) -> None:
    select = sa.select(sa.literal("a").label("to"), sa.column("run_at", type_))
    with pytest.raises(error, match=message):
        enqueue_select(connection, handler, select, options_from=names)
    assert sent == []


def test_what_is_no_select_is_refused(users: Session) -> None:
    wrong: Any
    for wrong in (User, sa.text("SELECT 1"), "SELECT 1", users.query(User.email)):
        with pytest.raises(OptionTypeError, match=r"select: expected sqlalchemy\.select\(\.\.\.\) with labelled"):
            enqueue_select(users, send_email, wrong)


def test_derived_keys_that_are_held_or_come_twice_are_passed_over(users: Session) -> None:
    held = enqueue(users, sync, 2)
    twice = sa.union_all(sa.select(User.id.label("user_id")), sa.select(User.id))

    assert enqueue_select(users, sync, twice) == 2
    assert enqueue_select(users, sync, twice) == 0
    assert {row.args["user_id"]: row.id for row in stored(users)}[2] == held.id


def test_keys_of_named_arguments_are_those_of_enqueue(users: Session) -> None:
    by_to = send_email.options(unique=("to",))
    assert not enqueue_select(users, by_to, sa.select(User.email.label("to")).where(User.id < 1))
    assert enqueue(users, by_to, "u1@x.y", "one").created

    assert enqueue_select(users, by_to, sa.select(User.email.label("to"), sa.literal("two").label("subject"))) == 2


@pytest.mark.parametrize("twice", [False, True], ids=["held", "twice"])
def test_raise_is_all_or_none_and_says_which_key(users: Session, twice: bool) -> None:
    strict = sync.options(on_conflict="raise")
    holder = None if twice else enqueue(users, sync, 2)
    select = sa.select(User.id.label("user_id"))
    with pytest.raises(
        UniqueKeyError, match=r"unique key 'user\.sync:\w+' is held by job \d+, or came twice"
    ) as caught:
        enqueue_select(users, strict, sa.union_all(select, select) if twice else select)

    assert [row.id for row in stored(users)] == ([] if holder is None else [holder.id])
    assert holder is None or caught.value.holder == holder.id
    assert enqueue_select(users, strict, select.where(User.id != 2)) == 2


def test_pending_objects_are_flushed_first_as_before_any_query(users: Session) -> None:
    select = sa.select(User.email.label("to")).where(User.id == 4)
    users.add(User(id=4, email="u4@x.y"))
    with users.no_autoflush:
        assert enqueue_select(users, send_email, select) == 0
    assert enqueue_select(users, send_email, select) == 1


@pytest.mark.parametrize("name", ["before_flush", "after_flush", "before_commit"])
def test_f52_a_session_event_can_enqueue_from_a_select(engine: sa.Engine, name: str) -> None:
    Base.metadata.create_all(engine)
    select = sa.select(User.email.label("to"))
    with Session(engine) as session:
        event.listen(session, name, lambda session, *_: enqueue_select(session, send_email, select), once=True)
        session.add(User(id=1, email="a"))
        session.commit()
        assert len(stored(session)) == (0 if name == "before_flush" else 1)


def test_a_rollback_leaves_nothing_also_that_of_a_savepoint(engine: sa.Engine) -> None:
    select = sa.select(sa.literal("a").label("to"))
    scoped = scoped_session(sessionmaker(engine))
    with scoped.begin_nested() as savepoint:
        assert enqueue_select(scoped, send_email, select) == 1
        savepoint.rollback()
    assert stored(scoped()) == []
    assert enqueue_select(scoped, send_email, select) == 1
    scoped.rollback()
    assert stored(scoped()) == []
    scoped.remove()


def test_what_has_no_transaction_is_refused(engine: sa.Engine) -> None:
    select = sa.select(sa.literal("a").label("to"))
    given: Any = engine
    with pytest.raises(BindError, match="enqueue_select takes a Session"):
        enqueue_select(given, send_email, select)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection, pytest.raises(AutocommitError):
        enqueue_select(connection, send_email, select)


def test_f50_one_notification_a_lane_tells_of_the_rows_that_are_due(
    engine: sa.Engine, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify._bucket, "_levels", {})
    n = sa.func.generate_series(1, 1000, type_=sa.Integer).column_valued("n")
    run_at = sa.case((n % 4 == 3, sa.cast(LATER, AWARE)))
    select = sa.select(
        sa.cast(n, sa.Text).label("to"),
        (n % 4).label("priority"),
        run_at.label("run_at"),
        sa.literal("s").label("subject"),
    )
    with Listener.connect(database_url.replace("+psycopg", ""), autocommit=True) as listener:
        listener.execute("LISTEN jobq")
        with engine.begin() as connection:
            assert enqueue_select(connection, send_email, select, options_from=("run_at", "priority")) == 1000
            later = send_email.options(delay=timedelta(hours=1))
            assert enqueue_select(connection, later, sa.select(sa.literal("a").label("to"))) == 1
        listener.execute("SELECT 1")
        heard = [parse(each.payload) for each in listener.notifies(timeout=10, stop_after=3)]
        listener.execute("NOTIFY jobq, 'end'")
        assert [each.payload for each in listener.notifies(timeout=10, stop_after=1)] == ["end"]

    assert sorted((each.queue, each.priority) for each in heard if each) == [("email", 0), ("email", 1), ("email", 2)]


def test_f69_an_error_of_the_database_shows_no_values(connection: sa.Connection) -> None:
    zero = sa.func.length(sa.literal("hunter2"), type_=sa.Integer) - 7
    with pytest.raises(sa.exc.DataError, match="division by zero") as caught:
        enqueue_select(connection, send_email, sa.select(sa.cast(1 / zero, sa.Text).label("to")))
    assert "hunter2" not in str(caught.value)


def test_the_statement_of_one_select_is_compiled_once(engine: sa.Engine) -> None:
    Base.metadata.create_all(engine)
    hits: list[bool] = []

    @event.listens_for(engine, "before_cursor_execute")
    def note(connection: Any, cursor: Any, sql: str, binds: Any, context: Any, many: bool) -> None:
        hits.append(context.cache_hit.name == "CACHE_HIT")

    with engine.begin() as connection:
        for n in range(3):
            select = sa.select(User.id.label("user_id")).where(User.email == f"a{n}")
            enqueue_select(connection, sync.options(delay=timedelta(n)), select)

    assert hits == [False, True, True]
