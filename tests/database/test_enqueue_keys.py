"""Unique keys: who holds one, what a second enqueue gets, and what two transactions at once do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from jobq.errors import UniqueKeyError
from jobq.handlers import Kind, kind
from jobq.model import Enqueued
from jobq.producer import enqueue, enqueue_many
from jobq.registry import App
from jobq.store import newjobs
from jobq.tables import jobs

pytestmark = pytest.mark.duty("enqueue")

app = App()


@app.handler("sync", unique=True)
def sync(company_id: int, what: dict[str, Any] | None = None, *, full: bool = False) -> None: ...


@app.handler("report", unique=("company_id", "month"))
def report(company_id: int, month: int = 1, lang: str = "en") -> None: ...


@app.handler("other", unique=True)
def other(company_id: int) -> None: ...


def keyed(key: str) -> Kind[...]:
    return kind("k", queue="q").options(unique_key=key)


def ids(connection: sa.Connection | Session) -> list[int]:
    return list(connection.scalars(sa.select(jobs.c.id).order_by(jobs.c.id)))


def key_of(connection: sa.Connection, given: Enqueued) -> str:
    return str(connection.scalars(sa.select(jobs.c.unique_key).where(jobs.c.id == given.id)).one())


def wait_until_blocked(engine: sa.Engine) -> None:
    """Until some transaction of this database waits for another: asked of the server, each time a round trip."""
    waiting = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while not connection.execute(waiting).scalar_one():
            connection.execute(sa.text("SELECT pg_sleep(0.01)"))


def in_own_transaction(engine: sa.Engine, work: Callable[[sa.Connection], Any]) -> Any:
    with engine.begin() as connection:
        return work(connection)


def test_a_held_key_gives_the_holders_id(connection: sa.Connection) -> None:
    first = enqueue(connection, keyed("k"), n=1)
    second = enqueue(connection, keyed("k").options(queue="elsewhere"), n=2)

    assert first.created
    assert second == Enqueued(first.id, created=False)
    assert ids(connection) == [first.id]


def test_a_key_is_global_over_kinds(connection: sa.Connection) -> None:
    first = enqueue(connection, keyed("k"))

    assert enqueue(connection, kind("another", queue="q").options(unique_key="k")).id == first.id


def test_raise_says_who_holds_the_key(connection: sa.Connection) -> None:
    first = enqueue(connection, keyed("k").options(on_conflict="raise"))
    with pytest.raises(UniqueKeyError, match=f"unique key 'k' is held by job {first.id}") as caught:
        enqueue(connection, keyed("k").options(on_conflict="raise"))

    assert (caught.value.key, caught.value.holder) == ("k", first.id)
    assert ids(connection) == [first.id]


def test_jobs_without_a_key_are_never_held_up(connection: sa.Connection) -> None:
    free = kind("k", queue="q")

    assert all(enqueue(connection, free).created for _ in range(3))
    assert enqueue(connection, sync.options(unique=False), 7).created
    assert enqueue(connection, sync.options(unique=False), 7).created


@pytest.mark.parametrize("end", ["dead", "cancelled", "done"])
def test_f08_an_ended_job_holds_no_key(connection: sa.Connection, end: str) -> None:
    first = enqueue(connection, keyed("k"))
    connection.execute(
        sa.text(
            "WITH ended AS (DELETE FROM jobq.jobs WHERE id = :id RETURNING *)"
            " INSERT INTO jobq.finished_jobs"
            " SELECT ended.*, CAST(:state AS text), NULL, now(), now() + interval '1 day' FROM ended"
        ),
        {"id": first.id, "state": end},
    )

    second = enqueue(connection, keyed("k"))
    assert second.created
    assert second.id != first.id


def test_f10_a_running_job_holds_its_key_against_ten_threads(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        first = enqueue(connection, keyed("k"))
        connection.execute(sa.update(jobs).values(worker_id=1, attempt=1))

    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(lambda _: in_own_transaction(engine, lambda c: enqueue(c, keyed("k"))), range(10)))

    assert answers == [Enqueued(first.id, created=False)] * 10


def test_of_ten_threads_at_once_one_creates_the_job(engine: sa.Engine) -> None:
    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(lambda _: in_own_transaction(engine, lambda c: enqueue(c, keyed("k"))), range(40)))

    assert sum(answer.created for answer in answers) == 1
    assert len({answer.id for answer in answers}) == 1


def two_at_once(engine: sa.Engine, settle: Callable[[sa.Connection, Enqueued], None]) -> tuple[Enqueued, Enqueued]:
    """T1 takes the key, T2 waits for it, T1 settles; what each got."""
    with engine.connect() as first, ThreadPoolExecutor(1) as thread:
        mine = enqueue(first, keyed("k"))
        theirs: Future[Enqueued] = thread.submit(in_own_transaction, engine, lambda c: enqueue(c, keyed("k")))
        wait_until_blocked(engine)
        settle(first, mine)
        return mine, theirs.result(timeout=30)


def test_f11_the_one_that_waits_creates_the_job_when_the_other_rolls_back(engine: sa.Engine) -> None:
    mine, theirs = two_at_once(engine, lambda connection, _: connection.rollback())

    assert theirs.created
    assert theirs.id != mine.id


def test_f11_the_one_that_waits_gets_the_others_id_when_that_commits(engine: sa.Engine) -> None:
    mine, theirs = two_at_once(engine, lambda connection, _: connection.commit())

    assert theirs == Enqueued(mine.id, created=False)


def test_f11_the_one_that_waits_creates_the_job_when_the_others_ends_at_that_moment(engine: sa.Engine) -> None:
    def end(connection: sa.Connection, mine: Enqueued) -> None:
        connection.execute(sa.delete(jobs).where(jobs.c.id == mine.id))
        connection.commit()

    _, theirs = two_at_once(engine, end)
    assert theirs.created


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_f11_a_key_taken_since_the_snapshot_is_the_databases_error(engine: sa.Engine, level: str) -> None:
    with engine.connect().execution_options(isolation_level=level) as connection:
        connection.execute(sa.select(jobs.c.id)).all()
        in_own_transaction(engine, lambda other: enqueue(other, keyed("k")))

        with pytest.raises(sa.exc.OperationalError) as caught:
            enqueue(connection, keyed("k"))
        assert caught.value.orig.sqlstate == "40001"  # type: ignore[union-attr]

        connection.rollback()
        assert not enqueue(connection, keyed("k")).created


def test_f11_keys_in_opposite_order_end_in_the_databases_deadlock_error_for_one(engine: sa.Engine) -> None:
    with engine.connect() as first, engine.connect() as second, ThreadPoolExecutor(1) as thread:
        enqueue(first, keyed("a"))
        enqueue(second, keyed("b"))
        crossing = thread.submit(enqueue, second, keyed("a"))
        wait_until_blocked(engine)
        errors: list[Any] = [error_of(enqueue, first, keyed("b"), first), crossing.exception(30)]

        assert [error.orig.sqlstate for error in errors if error] == ["40P01"]
        first.rollback()
        second.rollback()
        assert enqueue(first, keyed("b")).created


def error_of(function: Callable[..., Any], connection: sa.Connection, handler: Kind[...], ends: sa.Connection) -> Any:
    """The error, with which `ends` is rolled back so that the other side may go on; None when there was none."""
    try:
        function(connection, handler)
    except sa.exc.DBAPIError as error:
        return error
    finally:
        ends.rollback()
    return None


def test_f11_bulk_calls_with_keys_in_opposite_order_do_not_deadlock(engine: sa.Engine) -> None:
    rows = [keyed(f"k{n}").args() for n in range(300)]
    bare = kind("k", queue="q")

    def many(step: int) -> list[Enqueued]:
        return in_own_transaction(engine, lambda connection: enqueue_many(connection, bare, rows[::step]))  # type: ignore[no-any-return]

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(many, [1, -1] * 10))

    assert sum(answer.created for each in answers for answer in each) == 300
    assert {tuple(answer.id for answer in each[:: (-1) ** n]) for n, each in enumerate(answers)} == {
        tuple(answer.id for answer in answers[0])
    }


def test_f11_bulk_calls_of_several_statements_do_not_deadlock_either(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newjobs, "MOST_ROWS", 7)
    rows = [{"company_id": n} for n in range(50)]

    def many(step: int) -> list[Enqueued]:
        return in_own_transaction(engine, lambda connection: enqueue_many(connection, sync, rows[::step]))  # type: ignore[no-any-return]

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(many, [1, -1] * 5))

    assert sum(answer.created for each in answers for answer in each) == 50


def test_a_key_that_never_stands_still_ends_in_a_clear_error(engine: sa.Engine) -> None:
    """A trigger ends each holder's job in the statement that looks for it: no row is inserted, and none is there."""
    with engine.begin() as connection:
        connection.execute(
            sa.text(
                "CREATE FUNCTION jobq.skip() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
                "CREATE TRIGGER skip BEFORE INSERT ON jobq.jobs FOR EACH ROW EXECUTE FUNCTION jobq.skip()"
            )
        )
        with pytest.raises(UniqueKeyError, match="unique key 'k' was taken and freed again during each of 10 tries"):
            enqueue(connection, keyed("k"))
        with pytest.raises(UniqueKeyError, match="taken and freed again"):
            enqueue_many(connection, kind("k", queue="q"), [keyed("k").args()])


def test_f12_equal_content_is_one_key_whatever_its_order(connection: sa.Connection) -> None:
    first = enqueue(connection, sync, 1, what={"y": 2, "x": {"b": 1, "a": [1, 2]}})

    assert not enqueue(connection, sync, what={"x": {"a": [1, 2], "b": 1}, "y": 2}, company_id=1).created
    assert enqueue(connection, sync, 1, what={"y": 2, "x": {"b": 1, "a": [2, 1]}}).created
    assert len(key_of(connection, first)) == len("sync:") + 64


def test_f12_only_arguments_that_were_passed_count(connection: sa.Connection) -> None:
    assert enqueue(connection, sync, 1).created
    assert enqueue(connection, sync, 1, full=False).created
    assert not enqueue(connection, sync, company_id=1).created


def test_f12_values_of_other_types_are_other_keys(connection: sa.Connection) -> None:
    loose = kind("loose", queue="q").options(unique=True)

    given = [enqueue(connection, loose, x=x) for x in (1, 1.0, "1", True)]
    assert all(answer.created for answer in given)


def test_f12_kinds_have_keys_of_their_own(connection: sa.Connection) -> None:
    assert enqueue(connection, sync, 1).created
    assert enqueue(connection, other, 1).created


def test_named_arguments_alone_make_the_key(connection: sa.Connection) -> None:
    first = enqueue(connection, report, 1, 2, lang="en")

    assert enqueue(connection, report, 1, 2, lang="fr") == Enqueued(first.id, created=False)
    assert enqueue(connection, report, 1, 3).created
    assert enqueue(connection, report, 1).created
    assert not enqueue(connection, report.options(unique=("company_id",)), 1).created


def test_one_and_many_derive_the_same_keys(connection: sa.Connection) -> None:
    whole = enqueue(connection, sync, 1, what={"b": 1, "a": 2})
    some = enqueue(connection, report, 1, 2, lang="en")

    assert enqueue_many(connection, sync, [{"what": {"a": 2, "b": 1}, "company_id": 1}]) == [
        Enqueued(whole.id, created=False)
    ]
    assert enqueue_many(connection, report, [report.args(1, 2, lang="fr")]) == [Enqueued(some.id, created=False)]


@pytest.mark.parametrize("size", [2, 5000], ids=["one statement", "several"])
def test_f12_the_key_is_the_digest_of_jsonbs_own_text(
    connection: sa.Connection, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(newjobs, "MOST_ROWS", size)
    given = enqueue_many(connection, sync, [{"company_id": n, "what": {"b": 1, "aa": n}} for n in range(3)])
    wanted = sa.text(
        "SELECT 'sync:' || encode(sha256(convert_to(args::text, 'UTF8')), 'hex') FROM jobq.jobs WHERE id = :id"
    )

    for answer in given:
        assert key_of(connection, answer) == connection.execute(wanted, {"id": answer.id}).scalar_one()


def test_f12_two_processes_with_different_hash_seeds_derive_one_key(database_url: str) -> None:
    code = (
        "import sys, json, sqlalchemy as sa\n"
        "from jobq.handlers import kind\n"
        "from jobq.producer import enqueue\n"
        "loose = kind('loose', queue='q').options(unique=True)\n"
        "with sa.create_engine(sys.argv[1]).begin() as connection:\n"
        "    given = enqueue(connection, loose, tags=list({'a': 1, 'b': 2}), **json.loads(sys.argv[2]))\n"
        "print(json.dumps([given.id, given.created]))\n"
    )

    def run(seed: str, args: str) -> list[Any]:
        done = subprocess.run(
            [sys.executable, "-c", code, database_url, args],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        answer: list[Any] = json.loads(done.stdout)
        return answer

    first = run("1", '{"a": 1, "b": {"y": 2, "x": 1}}')
    second = run("2", '{"b": {"x": 1, "y": 2}, "a": 1}')
    assert first[1]
    assert second == [first[0], False]
