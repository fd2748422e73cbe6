from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import psycopg
import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended, add_job, add_worker, everything
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from jobq import admin as repair
from jobq import bulk
from jobq.errors import (
    BindError,
    NotEndedError,
    NotPendingError,
    OptionError,
    OptionTypeError,
    UniqueKeyError,
    UnknownJobError,
)
from jobq.model import State
from jobq.store import claiming
from jobq.tables import all_jobs, finished_jobs, jobs

pytestmark = pytest.mark.duty("operate")

HISTORY = [{"attempt": 1, "at": "2026-01-02T03:04:05+00:00", "error": "ValueError", "message": "no"}]


def test_a_job_is_found_by_its_id_in_whatever_state(connection: sa.Connection) -> None:
    ids = {
        State.PENDING: add_job(connection),
        State.RUNNING: add_job(connection, worker_id=7),
        **{state: add_ended(connection, state) for state in (State.DONE, State.DEAD, State.CANCELLED)},
    }

    found = {state: repair.get(connection, each) for state, each in ids.items()}

    assert {state: job and (job.id, job.state) for state, job in found.items()} == {
        state: (each, state) for state, each in ids.items()
    }


def test_a_job_that_is_not_there_is_none(connection: sa.Connection) -> None:
    assert repair.get(connection, 2**62) is None
    assert repair.args_text(connection, 2**62) is None


def test_args_that_python_cannot_parse_spoil_only_themselves(connection: sa.Connection) -> None:
    huge = sa.cast(sa.cast('{"n": ' + "9" * 5000 + "}", sa.Text), jobs.c.args.type)
    deep = sa.cast(sa.cast('{"a": ' * 1500 + "1" + "}" * 1500, sa.Text), jobs.c.args.type)
    ids = [add_job(connection, args=args, queue="odd") for args in (huge, {"n": 1}, deep)]

    found = repair.jobs(connection, all_jobs.c.queue == "odd")

    assert [job.args for job in reversed(found)] == [None, {"n": 1}, None]
    assert (repair.args_text(connection, ids[0]) or "").count("9") == 5000


def test_jobs_are_chosen_by_predicates_over_any_of_the_tables(connection: sa.Connection) -> None:
    waits = add_job(connection, kind="a")
    dead = add_ended(connection, kind="a")
    add_ended(connection, "done", kind="b")

    assert [job.id for job in repair.jobs(connection, all_jobs.c.kind == "a")] == [dead, waits]
    assert [job.id for job in repair.jobs(connection, jobs.c.kind == "a")] == [waits]
    assert [job.id for job in repair.jobs(connection, finished_jobs.c.kind == "a")] == [dead]
    assert [job.id for job in repair.jobs(connection, all_jobs.c.kind == "a", limit=1)] == [dead]
    assert len(repair.jobs(connection)) == 3


def test_a_listing_of_any_length_is_read_bit_by_bit_and_without_args(connection: sa.Connection) -> None:
    rows = [{"queue": "default", "kind": "k", "args": {"n": n}} for n in range(1_200)]
    connection.execute(sa.insert(jobs), rows)

    found = list(repair.each_brief(connection, jobs.c.kind == "k"))

    assert len(found) == 1_200
    assert all(job.args is None for job in found)


@pytest.mark.parametrize("state", ["dead", "done", "cancelled"])
def test_f18_a_retried_job_starts_with_no_failures_and_keeps_its_history(connection: sa.Connection, state: str) -> None:
    ended = add_ended(connection, state, errors=HISTORY, args={"to": "a@b.c"}, unique_key="k", callsite="shop.py:8")
    before = repair.get(connection, ended)

    retried = repair.retry(connection, ended)

    after = repair.get(connection, ended)
    assert retried.ids == (ended,)
    assert before is not None
    assert after is not None
    assert (after.state, after.failures, after.worker_id) == (State.PENDING, 0, None)
    assert after.run_at == connection.scalar(sa.select(NOW))
    kept = (
        "id",
        "queue",
        "kind",
        "args",
        "priority",
        "attempt",
        "max_attempts",
        "unique_key",
        "created_at",
        "callsite",
    )
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    assert [(failure.error, failure.message) for failure in after.errors] == [("ValueError", "no")]


@pytest.mark.parametrize(("worker_id", "state"), [(None, "pending"), (7, "running")])
def test_f18_a_job_that_has_not_ended_is_not_retried(
    connection: sa.Connection, worker_id: int | None, state: str
) -> None:
    open_job = add_job(connection, worker_id=worker_id)
    before = everything(connection)

    with pytest.raises(NotEndedError, match=f"job {open_job} is {state}") as refused:
        repair.retry(connection, open_job)

    assert (refused.value.id, refused.value.state) == (open_job, state)
    assert everything(connection) == before


def test_f09_a_retry_whose_key_is_taken_names_the_holder_and_changes_nothing(connection: sa.Connection) -> None:
    dead = add_ended(connection, unique_key="welcome:7")
    holder = add_job(connection, unique_key="welcome:7")
    before = everything(connection)

    with pytest.raises(UniqueKeyError, match=f"held by job {holder}") as refused:
        repair.retry(connection, dead)

    assert (refused.value.key, refused.value.holder) == ("welcome:7", holder)
    assert everything(connection) == before, "and the transaction is usable"


def test_f09_of_a_thousand_dead_jobs_with_one_key_one_is_retried(connection: sa.Connection) -> None:
    dead = [add_ended(connection, unique_key="k", kind="bulk") for _ in range(1_000)]

    retried = repair.retry(connection, all_jobs.c.kind == "bulk", all_jobs.c.state == "dead")

    assert retried.ids == (dead[0],)
    assert [refusal.id for refusal in retried.refused] == dead[1:]
    assert {type(refusal.error) for refusal in retried.refused} == {UniqueKeyError}
    assert len(repair.jobs(connection, finished_jobs.c.kind == "bulk", limit=None)) == 999


@pytest.mark.parametrize("end", ["dead", "cancel"])
def test_f08_a_key_is_free_once_its_job_has_ended(connection: sa.Connection, end: str) -> None:
    if end == "cancel":
        repair.cancel(connection, add_job(connection, unique_key="k"))
    else:
        add_ended(connection, unique_key="k")

    assert add_job(connection, unique_key="k")


def test_of_several_ids_those_that_can_be_retried_are(connection: sa.Connection) -> None:
    dead, waits = add_ended(connection), add_job(connection)

    retried = repair.retry(connection, waits, dead, 2**62)

    assert retried.ids == (dead,)
    assert {refusal.id: type(refusal.error) for refusal in retried.refused} == {
        waits: NotEndedError,
        2**62: UnknownJobError,
    }


def test_a_retry_wakes_the_workers_with_one_notification_a_lane(engine: sa.Engine, database_url: str) -> None:
    with (
        psycopg.connect(database_url.replace("+psycopg", ""), autocommit=True) as listener,
        engine.begin() as connection,
    ):
        listener.execute("LISTEN jobq")
        dead = [add_ended(connection, queue=queue) for queue in ("email", "email", "images")]
        repair.retry(connection, *dead)
        connection.commit()

        heard = [message.payload for message in listener.notifies(timeout=30, stop_after=2)]

    assert sorted(payload.rsplit("|", 1)[0] for payload in heard) == ["email|1", "images|1"]


def test_f28_a_waiting_job_is_cancelled_for_good(connection: sa.Connection) -> None:
    waits = add_job(connection, unique_key="k", args={"n": 1})

    cancelled = repair.cancel(connection, waits)

    job = repair.get(connection, waits)
    assert cancelled.ids == (waits,)
    assert job is not None
    assert (job.state, job.args, job.outcome) == (State.CANCELLED, {"n": 1}, "err: cancelled")
    assert connection.scalar(sa.select(sa.func.count()).select_from(jobs)) == 0


def test_f28_a_running_job_is_cancelled_only_when_asked_for(connection: sa.Connection) -> None:
    runs = add_job(connection, worker_id=7)
    before = everything(connection)

    with pytest.raises(NotPendingError, match="is running"):
        repair.cancel(connection, runs)
    assert everything(connection) == before

    assert repair.cancel(connection, runs, running=True).ids == (runs,)
    job = repair.get(connection, runs)
    assert job is not None
    assert (job.state, job.worker_id) == (State.CANCELLED, 7)


@pytest.mark.parametrize("state", ["done", "dead", "cancelled"])
def test_f28_an_ended_job_is_not_cancelled_and_the_error_says_how_it_ended(
    connection: sa.Connection, state: str
) -> None:
    ended = add_ended(connection, state, outcome="err: ValueError: no")
    before = everything(connection)

    with pytest.raises(NotPendingError, match=f"{state}, err: ValueError: no") as refused:
        repair.cancel(connection, ended)

    assert refused.value.state == state
    assert everything(connection) == before


def test_f28_in_a_race_with_a_claim_exactly_one_wins(engine: sa.Engine) -> None:
    rounds = 200
    with engine.begin() as connection:
        add_worker(connection, 7)
        ids = [add_job(connection) for _ in range(rounds)]
    lane = claiming.LaneAsk("default", 1, datetime.min.replace(tzinfo=UTC), 0, 1)
    start = Barrier(2, timeout=30)

    def claim_all() -> list[int]:
        claimed: list[int] = []
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for _ in range(rounds):
                start.wait()
                found = claiming.claim(connection, [lane], worker_id=7, kinds=["email.send"], most=1)
                claimed += [job.id for job in found.jobs]
        return claimed

    def cancel_all() -> list[int]:
        cancelled: list[int] = []
        with engine.connect() as connection:
            for each in ids:
                start.wait()
                cancelled += repair.cancel_ids(connection, [each]).ids
                connection.commit()
        return cancelled

    with ThreadPoolExecutor(2) as threads:
        claims, cancels = threads.submit(claim_all), threads.submit(cancel_all)
        claimed, cancelled = claims.result(), cancels.result()

    assert sorted(claimed + cancelled) == ids
    with engine.connect() as connection:
        states = {job.id: job.state for job in repair.jobs(connection, limit=None)}
    assert states == {**dict.fromkeys(claimed, State.RUNNING), **dict.fromkeys(cancelled, State.CANCELLED)}


@pytest.mark.parametrize(
    ("meta", "days"),
    [
        pytest.param({}, 7, id="default"),
        pytest.param({"keep": 86_400}, 7, id="shorter"),
        pytest.param({"keep": 30 * 86_400}, 30, id="of the job"),
        pytest.param({"keep": "long"}, 7, id="not a number"),
        pytest.param({"keep": -5}, 7, id="negative"),
        pytest.param({"keep": 1e300}, 3_000_000_000 / 86_400, id="beyond all time"),
    ],
)
def test_a_cancelled_job_is_kept_as_it_says_and_seven_days_at_least(
    connection: sa.Connection, meta: dict[str, object], days: float
) -> None:
    waits = add_job(connection, meta=meta)

    repair.cancel(connection, waits)

    job = repair.get(connection, waits)
    assert job is not None
    assert job.expires_at == connection.scalar(sa.select(NOW)) + timedelta(days=days)


def test_a_cancelled_job_is_kept_as_its_handler_says(connection: sa.Connection) -> None:
    kinds = sa.table("kinds", *map(sa.column, ("kind", "queue", "max_attempts", "keep")), schema="jobq")
    published = {"kind": "email.send", "queue": "default", "max_attempts": 5, "keep": timedelta(days=20)}
    connection.execute(sa.insert(kinds).values(published))
    waits = add_job(connection)

    repair.cancel(connection, waits)

    job = repair.get(connection, waits)
    assert job is not None
    assert job.expires_at == connection.scalar(sa.select(NOW)) + timedelta(days=20)


def test_cancel_by_predicates_leaves_running_jobs_alone(connection: sa.Connection) -> None:
    waits, runs = add_job(connection, queue="email"), add_job(connection, queue="email", worker_id=7)
    other = add_job(connection, queue="images")

    cancelled = repair.cancel(connection, all_jobs.c.queue == "email")

    assert cancelled.ids == (waits,)
    assert {job.id for job in repair.jobs(connection, jobs.c.id > 0)} == {runs, other}


def test_a_repair_in_chunks_leaves_later_jobs_alone(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        dead = [add_ended(connection, kind="bulk") for _ in range(25)]
        connection.commit()
        chosen = [finished_jobs.c.kind == "bulk"]
        extent = bulk.extent(connection, finished_jobs, chosen)
        later = add_ended(connection, kind="bulk")

        chunks = bulk.in_chunks(connection, finished_jobs, chosen, repair.retry_ids, upto=extent.highest, size=10)
        sizes = [len(repaired.ids) for repaired in chunks]

        assert (extent.matched, sizes) == (25, [10, 10, 5])
        assert [job.id for job in repair.jobs(connection, *chosen)] == [later]
        assert dead[-1] == extent.highest


def test_a_rollback_of_the_caller_undoes_a_repair(session: Session) -> None:
    dead = add_ended(session.connection())
    session.commit()

    repair.retry(session, dead)
    session.rollback()

    job = repair.get(session, dead)
    assert job is not None
    assert job.state is State.DEAD


@pytest.mark.anyio
async def test_the_async_twins_do_the_same(engine: sa.Engine, database_url: str) -> None:
    with engine.begin() as connection:
        dead, waits = add_ended(connection), add_job(connection)
        add_worker(connection, 7)
    async_engine = create_async_engine(database_url)
    try:
        async with AsyncSession(async_engine) as session:
            retried = await repair.retry_async(session, dead)
            cancelled = await repair.cancel_async(session, waits, running=True)
            found = await repair.get_async(session, dead)
            listed = await repair.jobs_async(session, all_jobs.c.state == "cancelled", limit=5)
            counted = await repair.stats_async(session)
            alive = await repair.workers_async(session)
    finally:
        await async_engine.dispose()

    assert (retried.ids, cancelled.ids) == ((dead,), (waits,))
    assert found is not None
    assert found.state is State.PENDING
    assert [job.id for job in listed] == [waits]
    assert counted.states[State.PENDING] == 1
    assert [row.id for row in alive] == [7]


def test_the_wrong_kind_of_session_is_refused_by_name(connection: sa.Connection, engine: sa.Engine) -> None:
    with pytest.raises(BindError, match="Engine"):
        repair.retry(engine, 1)  # type: ignore[arg-type]
    with pytest.raises(BindError, match="use retry"):
        repair.retry_async(connection, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("which", "error"),
    [
        pytest.param((), OptionError, id="nothing"),
        pytest.param((0,), OptionError, id="zero"),
        pytest.param((10**30,), OptionError, id="out of range"),
        pytest.param((True,), OptionTypeError, id="a bool"),
        pytest.param(("42",), OptionTypeError, id="text"),
        pytest.param((1, all_jobs.c.id == 1), OptionTypeError, id="ids and predicates"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_any_change(
    connection: sa.Connection, which: tuple[object, ...], error: type[Exception]
) -> None:
    before = everything(connection)

    with pytest.raises(error):
        repair.retry(connection, *which)  # type: ignore[arg-type]

    assert everything(connection) == before
