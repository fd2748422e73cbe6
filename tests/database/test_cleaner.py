from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from threading import Event, Thread
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended, add_job, add_worker, everything
from sqlalchemy.ext.asyncio import create_async_engine
from store_rows import KINDS, ME, claim_from

import jobq
from jobq.cleaner import LEAST, Cleaning
from jobq.retention import KEEP_DONE
from jobq.statements.clean import delete_expired
from jobq.store import cleaning as store
from jobq.tables import finished_jobs, jobs, leader

LONG_AGO = NOW - timedelta(days=2)
EXPIRED = {"finished_at": LONG_AGO, "expires_at": LONG_AGO + KEEP_DONE}
MANY = """
    INSERT INTO jobq.finished_jobs (id, queue, kind, args, priority, run_at, attempt, failures, created_at, meta,
                                    errors, state, finished_at, expires_at)
    SELECT -n, 'default', 'email.send', '{"to": "somebody@example.com"}', 1, at, 1, 0, at, '{}', '[]', 'done', at,
           at + interval '1 day'
    FROM (SELECT n, now() - interval '3 days' + n * interval '1 ms' AS at FROM generate_series(1, :number) n) AS old
"""


def ids(connection: sa.Connection) -> set[int]:
    return set(connection.scalars(sa.select(finished_jobs.c.id)))


def test_what_has_been_kept_for_its_time_is_deleted_and_nothing_else(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        for state in ("done", "dead", "cancelled"):
            add_ended(connection, state, **EXPIRED)
        kept = {
            add_ended(connection, "done", finished_at=LONG_AGO, expires_at=NOW + timedelta(minutes=1)),
            add_ended(connection, "dead", finished_at=LONG_AGO),
            add_ended(connection, "cancelled"),
        }
        waiting, running = add_job(connection, run_at=LONG_AGO), add_job(connection, worker_id=ME)

    assert jobq.clean(engine) == 3

    with engine.begin() as connection:
        assert ids(connection) == kept
        assert set(connection.scalars(sa.select(jobs.c.id))) == {waiting, running}
    assert jobq.clean(engine) == 0


@pytest.mark.anyio
async def test_the_async_twin_does_the_same(engine: sa.Engine, database_url: str) -> None:
    with engine.begin() as connection:
        add_ended(connection, **EXPIRED)
        kept = add_ended(connection)
    other = create_async_engine(database_url)

    deleted = await jobq.clean_async(other)

    await other.dispose()
    with engine.begin() as connection:
        assert (deleted, ids(connection)) == (1, {kept})


def test_a_handler_can_call_it_and_commits_nothing_of_its_caller(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_ended(connection, **EXPIRED)
    with engine.connect() as mine:
        add_job(mine)

        assert jobq.clean(engine) == 1

        mine.rollback()
        assert everything(mine) == []


def test_what_is_no_engine_is_refused_with_the_twin_that_fits(engine: sa.Engine, connection: sa.Connection) -> None:
    given: Any = connection
    with pytest.raises(jobq.BindError, match="clean takes an Engine, got Connection"):
        jobq.clean(given)
    given = engine
    with pytest.raises(jobq.BindError, match="got Engine"):
        jobq.clean_async(given)


def test_an_engine_in_autocommit_or_serializable_will_do(engine: sa.Engine) -> None:
    for level in ("AUTOCOMMIT", "SERIALIZABLE"):
        with engine.begin() as connection:
            add_ended(connection, **EXPIRED)

        assert jobq.clean(engine.execution_options(isolation_level=level)) == 1


def test_each_chunk_is_a_transaction_of_its_own(engine: sa.Engine) -> None:
    cleaning, left = Cleaning(), []
    with engine.begin() as connection:
        for _ in range(25):
            add_ended(connection, **EXPIRED)
    cleaning.size = 10

    with engine.connect() as connection, engine.connect() as watching:
        while not cleaning.is_over:
            cleaning.size = 10  # quick chunks have doubled it
            cleaning.step(connection)
            assert not connection.in_transaction()
            left.append(len(ids(watching)))
            watching.rollback()

    assert left == [15, 5, 0]


def test_a_row_that_another_holds_locked_is_left_for_the_next_pass(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        held, _ = add_ended(connection, **EXPIRED), add_ended(connection, **EXPIRED)
    with engine.begin() as holder:
        holder.execute(sa.select(finished_jobs.c.id).where(finished_jobs.c.id == held).with_for_update())

        assert jobq.clean(engine) == 1

        assert ids(holder) == {held}
    assert jobq.clean(engine) == 1


def test_two_that_clean_at_once_delete_each_job_once(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        for _ in range(20):
            add_ended(connection, **EXPIRED)
    with engine.begin() as one, engine.begin() as other:
        first = store.delete_expired(one, since=store.START, most=15)
        second = store.delete_expired(other, since=store.START, most=15)

    assert (first.deleted, second.deleted) == (15, 5)


def test_what_no_sum_holds_yet_is_kept_for_up_to_an_hour(connection: sa.Connection) -> None:
    """A job with keep=0 would be gone before it is counted."""
    summed = NOW - timedelta(minutes=10)
    connection.execute(sa.insert(leader).values(name="maintenance", term=1, summed_until=summed))
    for minutes in (90, 30, 11.5, 10.5, 1, 0):
        ended = NOW - timedelta(minutes=minutes)
        add_ended(connection, "done", priority=int(minutes) % 4, finished_at=ended, expires_at=ended)

    assert store.delete_expired(connection, since=store.START, most=100).deleted == 3
    connection.execute(sa.update(leader).values(summed_until=NOW - timedelta(hours=9)))

    assert store.count_expired(connection) == 0, "not summed for long: an hour is what they are kept at most"
    connection.execute(sa.update(leader).values(summed_until=None))
    assert store.count_expired(connection) == 3, "no leader was ever there: nobody will count them"


def test_a_chunk_that_is_too_slow_for_the_servers_limit_is_tried_again_smaller(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text(MANY), {"number": 1_000})
        connection.exec_driver_sql("""
            CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_sleep(0.001); RETURN old; END $$;
            CREATE TRIGGER slow BEFORE DELETE ON jobq.finished_jobs FOR EACH ROW EXECUTE FUNCTION slow();
        """)
    cleaning, deleted = Cleaning(), 0

    with engine.connect() as connection:
        connection.exec_driver_sql("SET statement_timeout = '400ms'")
        connection.commit()
        while not cleaning.is_over:
            deleted += cleaning.step(connection)

    assert deleted == 1_000
    assert cleaning.size < 1_000


def test_a_limit_that_even_the_smallest_chunk_breaks_is_an_error(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_ended(connection, **EXPIRED)
    with engine.begin() as holder, engine.connect() as connection:
        holder.exec_driver_sql("LOCK TABLE jobq.finished_jobs")
        connection.exec_driver_sql("SET statement_timeout = '20ms'")
        connection.commit()
        cleaning = Cleaning()
        while cleaning.size > LEAST:
            assert cleaning.step(connection) == 0

        with pytest.raises(sa.exc.DBAPIError, match="statement timeout"):
            cleaning.step(connection)


def test_expired_jobs_are_found_by_their_index(connection: sa.Connection) -> None:
    connection.execute(sa.text(MANY), {"number": 3_000})
    connection.exec_driver_sql("ANALYZE jobq.finished_jobs")
    connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
    connection.exec_driver_sql("SET LOCAL enable_bitmapscan = off")
    compiled = delete_expired().compile(dialect=connection.dialect)
    binds = {**compiled.params, "since": store.START, "most": 10}

    plan = "\n".join(connection.exec_driver_sql(f"EXPLAIN {compiled}", binds).scalars())

    assert "finished_jobs_expires" in plan
    assert "Seq Scan on finished_jobs" not in plan


@pytest.fixture
def claims(engine: sa.Engine) -> Iterator[list[float]]:
    """How long each of many claims took that are made meanwhile, in seconds."""
    waits: list[float] = []
    is_over = Event()

    def claim() -> None:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            while not is_over.is_set():
                add_job(connection)
                began = time.perf_counter()
                claimed = claim_from(connection, kinds=KINDS, most=10)
                waits.append(time.perf_counter() - began)
                assert claimed.jobs

    with engine.begin() as connection:
        add_worker(connection, ME)
    thread = Thread(target=claim)
    thread.start()
    yield waits
    is_over.set()
    thread.join()


@pytest.mark.slow
def test_f62_very_many_expired_jobs_go_in_chunks_while_claims_do_not_wait(
    engine: sa.Engine, database_url: str, claims: list[float]
) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text(MANY), {"number": 200_000})
        kept = {add_ended(connection, "dead"), add_ended(connection, "done")}
        waiting = add_job(connection, queue="another")
    limited = sa.create_engine(database_url, connect_args={"options": "-c statement_timeout=2s"})
    taken: list[float] = []
    before = len(claims)

    with limited.connect() as connection:
        cleaning, deleted = Cleaning(), 0
        while not cleaning.is_over:
            began = time.perf_counter()
            deleted += cleaning.step(connection)
            taken.append(time.perf_counter() - began)
    limited.dispose()

    with engine.begin() as connection:
        assert (deleted, ids(connection)) == (200_000, kept)
        assert connection.scalar(sa.select(jobs.c.id).where(jobs.c.queue == "another")) == waiting
    assert len(taken) >= 20
    assert max(taken) < 2.0, "of the server's limit; 0.1 s on an idle machine"
    waits = sorted(claims[before:])
    assert waits[len(waits) * 99 // 100] < 0.2, "claims wait for nothing that the cleaner does"
