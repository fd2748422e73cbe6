"""Many jobs in one call: their order, their keys, what is told and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from psycopg import Connection as Listener
from sqlalchemy import event
from sqlalchemy.orm import Session

from jobq import notify, preparing
from jobq.errors import ArgsError, AutocommitError, BindError, OptionTypeError, UniqueKeyError
from jobq.handlers import kind
from jobq.model import Enqueued
from jobq.notify import parse
from jobq.producer import enqueue, enqueue_many
from jobq.registry import App
from jobq.store import newjobs
from jobq.tables import jobs

pytestmark = pytest.mark.duty("enqueue")

app = App()


@app.handler("email.send", queue="email", max_attempts=8)
def send_email(to: str, n: int = 0) -> None: ...


@app.handler("invoice.pdf")
def render_invoice(invoice_id: int) -> None: ...


def count(connection: sa.Connection | Session) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(jobs)).scalar_one()


@pytest.fixture
def statements(shared_engine: sa.Engine) -> Iterator[list[str]]:
    """What is sent to the server meanwhile."""
    sent: list[str] = []

    def note(connection: Any, cursor: Any, sql: str, *_: Any) -> None:
        sent.append(sql)

    event.listen(shared_engine, "before_cursor_execute", note)
    yield sent
    event.remove(shared_engine, "before_cursor_execute", note)


def test_answers_come_in_the_order_of_the_rows_and_ids_ascend(connection: sa.Connection, statements: list[str]) -> None:
    rows = [send_email.args(f"a{n}", n=n) if n % 2 else {"to": f"a{n}", "n": n} for n in range(500)]

    given = enqueue_many(connection, send_email, rows)

    assert len(statements) == 1
    ids = [answer.id for answer in given]
    assert ids == sorted(ids)
    assert all(answer.created for answer in given)
    stored = connection.execute(sa.select(jobs.c.id, jobs.c.args, jobs.c.queue, jobs.c.max_attempts)).all()
    assert {row.id: row.args["n"] for row in stored} == dict(zip(ids, range(500), strict=True))
    assert {(row.queue, row.max_attempts) for row in stored} == {("email", 8)}


def test_a_generator_will_do_and_callsites_are_the_callers(connection: sa.Connection) -> None:
    enqueue_many(connection, send_email, ({"to": str(n)} for n in range(3)))

    (callsite,) = set(connection.scalars(sa.select(jobs.c.callsite)))
    assert callsite is not None
    assert callsite.startswith("tests/database/test_enqueue_many.py:")


def test_no_rows_are_no_sql(connection: sa.Connection, statements: list[str]) -> None:
    assert enqueue_many(connection, send_email, []) == []
    assert statements == []


@pytest.mark.parametrize("unit", ["rows", "characters"])
def test_more_rows_than_a_statement_takes_go_in_by_several(
    connection: sa.Connection, statements: list[str], monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    monkeypatch.setattr(preparing, "TOGETHER", 5)
    if unit == "rows":
        monkeypatch.setattr(newjobs, "MOST_ROWS", 10)
    else:
        monkeypatch.setattr(newjobs, "MOST_CHARACTERS", 10 * len('{"n":99,"to":"a"},'))

    given = enqueue_many(connection, send_email, [{"to": "a", "n": 10 + n} for n in range(25)])

    assert len(statements) == 3
    numbers = [connection.scalars(sa.select(jobs.c.args).where(jobs.c.id == one.id)).one()["n"] for one in given]
    assert numbers == list(range(10, 35))


def test_a_row_larger_than_a_statement_should_be_goes_in_alone(
    connection: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newjobs, "MOST_CHARACTERS", 5)

    assert len(enqueue_many(connection, send_email, [{"to": "a" * 100}, {"to": "b" * 100}])) == 2


def test_options_of_the_call_count_and_those_of_a_row_before_them(connection: sa.Connection) -> None:
    urgent = send_email.options(priority=0, delay=timedelta(hours=1))
    rows = [
        send_email.args("a"),
        send_email.options(priority=3, keep=timedelta(minutes=1)).args("b"),
        send_email.options(queue="own", unique_key="k", max_attempts=1).args("c"),
    ]

    given = enqueue_many(connection, urgent, rows)

    stored = {row.id: row for row in connection.execute(sa.select(jobs))}
    first, second, third = (stored[answer.id] for answer in given)
    assert [(row.queue, row.priority, row.max_attempts, row.unique_key) for row in (first, second, third)] == [
        ("email", 0, 8, None),
        ("email", 3, 8, None),
        ("own", 0, 1, "k"),
    ]
    assert second.meta == {"keep": 60.0}
    assert {row.run_at - row.created_at for row in stored.values()} == {timedelta(hours=1)}


def test_times_of_rows_are_their_own_and_never_past(connection: sa.Connection) -> None:
    later = datetime(2130, 1, 1, tzinfo=UTC)
    rows = [send_email.options(run_at=at).args("a") for at in (later, datetime(2000, 1, 1, tzinfo=UTC))]

    first, second = enqueue_many(connection, send_email, rows)

    run_at = {row.id: (row.run_at, row.created_at) for row in connection.execute(sa.select(jobs))}
    assert run_at[first.id][0] == later
    assert run_at[second.id][0] == run_at[second.id][1]


def test_keys_that_are_held_or_come_twice_give_the_holder(connection: sa.Connection) -> None:
    held = enqueue(connection, send_email.options(unique_key="held"), "a")
    rows = [send_email.options(unique_key=key).args(to=key) for key in ("z", "held", "a", "z", "a", "z")]

    given = enqueue_many(connection, send_email, [*rows, send_email.args("free")])

    assert [answer.created for answer in given] == [True, False, True, False, False, False, True]
    z, a = given[0].id, given[2].id
    assert [answer.id for answer in given[:-1]] == [z, held.id, a, z, a, z]
    assert count(connection) == 4
    stored = {row.unique_key: row.args["to"] for row in connection.execute(sa.select(jobs))}
    assert stored == {"held": "a", "z": "z", "a": "a", None: "free"}


def test_of_equal_keys_the_first_row_has_the_job_also_over_statements(
    connection: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newjobs, "MOST_ROWS", 2)
    rows = [send_email.options(unique_key=f"k{n % 3}").args("a", n=n) for n in range(9)]

    given = enqueue_many(connection, send_email, rows)

    assert [answer.created for answer in given] == [True] * 3 + [False] * 6
    assert [answer.id for answer in given] == [answer.id for answer in given[:3]] * 3
    assert sorted(args["n"] for args in connection.scalars(sa.select(jobs.c.args))) == [0, 1, 2]


def test_raise_is_all_or_none_and_leaves_the_transaction_usable(engine: sa.Engine) -> None:
    strict = send_email.options(on_conflict="raise")
    with Session(engine) as session:
        held = enqueue(session, strict.options(unique_key="held"), "a")
        rows = [strict.options(unique_key=key).args("b") for key in ("free", "held")]

        with pytest.raises(UniqueKeyError, match=f"'held' is held by job {held.id}"):
            enqueue_many(session, send_email, [*rows, send_email.args("c")])

        session.commit()
        assert session.scalars(sa.select(jobs.c.id)).all() == [held.id]
        assert [answer.created for answer in enqueue_many(session, send_email, rows[:1])] == [True]


BAD_ROWS: list[tuple[list[Any], str]] = [
    ([{"to": "a"}, {"too": "a"}], "rows[1].args.too"),
    ([{"to": "a"}, {"to": "a\0b"}], "rows[1].args.to"),
    ([{}], "rows[0].args.to"),
    (["a@b.c"], "rows[0]"),
    ([("a@b.c",)], "rows[0]"),
    ([render_invoice.args(1)], "rows[0]"),
    ([kind("email.send", queue="email").args(to="a")], "rows[0]"),
]


@pytest.mark.parametrize(("rows", "path"), BAD_ROWS, ids=[path for _, path in BAD_ROWS])
def test_a_bad_row_is_named_and_nothing_is_sent(
    connection: sa.Connection, statements: list[str], rows: list[Any], path: str
) -> None:
    with pytest.raises(ArgsError) as caught:
        enqueue_many(connection, send_email, rows)

    assert caught.value.path == path
    assert statements == []


@pytest.mark.parametrize("rows", [{"to": "a"}, "a@b.c", send_email.args("a")], ids=["mapping", "str", "args"])
def test_one_row_alone_is_no_list(connection: sa.Connection, rows: Any) -> None:
    with pytest.raises(OptionTypeError, match="rows: expected a list"):
        enqueue_many(connection, send_email, rows)


def test_what_has_no_transaction_is_refused(engine: sa.Engine) -> None:
    wrong: Any = engine
    with pytest.raises(BindError, match=r"enqueue_many takes .* with engine\.begin"):
        enqueue_many(wrong, send_email, [])
    with (
        engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        pytest.raises(AutocommitError, match="enqueue_many"),
    ):
        enqueue_many(connection, send_email, [{"to": "a"}])


@pytest.mark.parametrize("unique", [False, True], ids=["plain", "keyed"])
def test_f50_ten_thousand_jobs_are_told_once_a_lane(
    engine: sa.Engine, database_url: str, monkeypatch: pytest.MonkeyPatch, unique: bool
) -> None:
    monkeypatch.setattr(notify._bucket, "_levels", {})
    handler = send_email.options(unique=unique)
    rows = [{"to": "a", "n": n} for n in range(10_000)]
    late = [handler.options(queue="late", delay=timedelta(hours=1)).args("b"), handler.options(priority=0).args("c")]
    with Listener.connect(database_url.replace("+psycopg", ""), autocommit=True) as listener:
        listener.execute("LISTEN jobq")
        with engine.begin() as connection:
            enqueue_many(connection, handler, [*rows, *late])
        heard = [parse(one.payload) for one in listener.notifies(timeout=10, stop_after=2)]
        listener.execute("NOTIFY jobq, 'end'")
        (end,) = listener.notifies(timeout=10, stop_after=1)

    assert {(one.queue, one.priority) for one in heard if one} == {("email", 1), ("email", 0)}
    assert end.payload == "end"


def test_f69_an_error_of_the_database_shows_no_arguments(connection: sa.Connection) -> None:
    connection.execute(sa.text("DROP TABLE jobq.jobs CASCADE"))
    with pytest.raises(sa.exc.ProgrammingError) as caught:
        enqueue_many(connection, send_email, [{"to": "hunter2"}])

    assert "hunter2" not in str(caught.value)


def test_a_rollback_leaves_none(engine: sa.Engine) -> None:
    with Session(engine) as session:
        given = enqueue_many(session, send_email, [{"to": "a"}] * 3)
        assert all(isinstance(answer, Enqueued) for answer in given)
        assert session.in_transaction()
        session.rollback()
        assert count(session) == 0


def as_args(n: int) -> Any:
    return send_email.args(f"a{n}", n=n)


def as_mapping(n: int) -> Any:
    return {"n": n, "to": f"a{n}"}


def of_one_source(n: int) -> Any:
    return eager.args(f"a{n}", n=n)


eager = send_email.options(priority=0)


@pytest.mark.parametrize("row_of", [as_args, as_mapping, of_one_source])
def test_rows_of_one_manner_go_in_by_one_json_text(
    connection: sa.Connection, statements: list[str], row_of: Callable[[int], Any]
) -> None:
    given = enqueue_many(connection, send_email, [row_of(n) for n in range(450)])

    assert [sql.count("jsonb_array_elements") for sql in statements] == [1]
    stored = {row.id: row.args for row in connection.execute(sa.select(jobs.c.id, jobs.c.args))}
    assert [stored[answer.id] for answer in given] == [{"to": f"a{n}", "n": n} for n in range(450)]


def test_rows_of_any_length_up_to_the_limit_go_in(connection: sa.Connection) -> None:
    rows: list[Any] = [{"to": "a" * 600_000}, {"to": r"six: \u0000"}, {"to": "b" * 600_000}, send_email.args("c" * 10)]

    given = enqueue_many(connection, send_email, rows)

    stored = {row.id: row.args for row in connection.execute(sa.select(jobs.c.id, jobs.c.args))}
    assert [len(stored[answer.id]["to"]) for answer in given] == [600_000, 11, 600_000, 10]


def test_a_bad_row_among_many_is_named(connection: sa.Connection, statements: list[str]) -> None:
    rows = [{"to": "a"} if n != 333 else {"to": 5} for n in range(500)]
    with pytest.raises(ArgsError, match=r"^rows\[333\]\.args\.to: expected str, got int 5$"):
        enqueue_many(connection, send_email, rows)

    assert statements == []


def test_jobs_that_are_not_due_tell_nobody_also_in_bulk(
    engine: sa.Engine, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify._bucket, "_levels", {})
    later = send_email.options(run_at=datetime(2130, 1, 1, tzinfo=UTC))
    monkeypatch.setattr(type(later.effective()), "is_later", lambda *_: False)  # a clock that is a century ahead
    with Listener.connect(database_url.replace("+psycopg", ""), autocommit=True) as listener:
        listener.execute("LISTEN jobq")
        with engine.begin() as connection:
            enqueue_many(connection, later, [{"to": "a"}] * 3)
            connection.execute(sa.text("NOTIFY jobq, 'end'"))
        (first,) = listener.notifies(timeout=10, stop_after=1)

    assert first.payload == "end"
