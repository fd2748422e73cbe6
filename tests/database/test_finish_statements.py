"""Ending claimed jobs, and giving them back: what is written, and what the fence refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_job
from store_rows import ME, OTHER, add_running, in_thread, listening, row, running_on, stale

from jobq.backoff import Exponential
from jobq.describe import as_json, describe, storable
from jobq.model import Position, State
from jobq.store.announcing import announce
from jobq.store.ending import Ending, Fence, finish, set_outcome
from jobq.store.putting_back import give_back, give_back_unknown, put_back
from jobq.store.recorded import settle
from jobq.tables import finished_jobs, jobs
from jobq.verdict import Ended, judge

SECOND = timedelta(seconds=1)
ENDED = ("state", "outcome", "finished_at", "expires_at")


def error_of(message: str, attempt: int = 1) -> str:
    return json.dumps({"attempt": attempt, "worker": "w", "error": "ValueError", "message": message, "traceback": None})


def now(connection: sa.Connection) -> Any:
    return connection.execute(sa.select(NOW)).scalar_one()


def test_a_finished_job_is_moved_whole(connection: sa.Connection) -> None:
    fence = add_running(
        connection, args={"a": 1}, unique_key="k", callsite="shop.py:8", meta={"keep": 5}, failures=2, errors=[{"n": 1}]
    )
    before = row(connection, fence.id)

    mine = finish(connection, [Ending(fence, State.DONE, "ok: sent", keep=60 * SECOND)])

    at = now(connection)
    assert mine == {fence.id}
    after = row(connection, fence.id)
    ended_at = after["finished_at"]
    assert after == {**before, **dict(zip(ENDED, ("done", "ok: sent", ended_at, at + 60 * SECOND), strict=True))}
    assert at < ended_at, "the time of the statement: a handler's own transaction may have begun long before"
    assert connection.scalar(sa.select(sa.func.count()).select_from(jobs)) == 0


def test_one_statement_ends_any_mix_of_attempts_states_outcomes_and_errors(connection: sa.Connection) -> None:
    ids = [add_running(connection, attempt=attempt, failures=attempt - 1) for attempt in (7, 1, 300, 2, 1)]
    lost = add_running(connection, OTHER)
    endings = [
        Ending(ids[0], State.DONE, "ok: a", keep=SECOND),
        Ending(ids[1], State.DEAD, "err: ValueError: b", error_of("b"), keep=2 * SECOND),
        Ending(ids[2], State.DONE, keep=3 * SECOND),
        Ending(replace(ids[3], attempt=1), State.DONE, "ok: too late", keep=4 * SECOND),
        Ending(ids[4], State.DONE, "skip: e", keep=timedelta(0)),
        Ending(replace(lost, worker_id=ME), State.DEAD, "err: not mine", error_of("no")),
    ]

    mine = finish(connection, list(reversed(endings)))

    assert mine == {ids[n].id for n in (0, 1, 2, 4)}
    at = now(connection)
    rows = [row(connection, fence.id) for fence in ids]
    assert [(r["state"], r["outcome"], r["failures"]) for r in rows] == [
        ("done", "ok: a", 6),
        ("dead", "err: ValueError: b", 1),
        ("done", None, 299),
        ("running", None, 1),
        ("done", "skip: e", 0),
    ]
    assert [r["expires_at"] and r["expires_at"] - at for r in rows] == [
        SECOND,
        2 * SECOND,
        3 * SECOND,
        None,
        timedelta(0),
    ]
    assert [[e["message"] for e in r["errors"]] for r in rows] == [[], ["b"], [], [], []]
    assert row(connection, lost.id)["state"] == "running"


def test_a_batch_of_a_thousand_finds_each_job_its_own_outcome(connection: sa.Connection) -> None:
    connection.execute(
        sa.insert(jobs), [{"queue": "q", "kind": "k", "worker_id": ME, "attempt": n % 7} for n in range(1_000)]
    )
    fences = [Fence(id_, attempt, ME) for id_, attempt in connection.execute(sa.select(jobs.c.id, jobs.c.attempt))]

    mine = finish(connection, [Ending(fence, State.DONE, f"ok: {fence.id}") for fence in fences])

    assert mine == {fence.id for fence in fences}
    ended = connection.execute(sa.select(finished_jobs.c.id, finished_jobs.c.outcome)).all()
    assert all(outcome == f"ok: {id_}" for id_, outcome in ended)
    assert len(ended) == 1_000


def test_f25_the_fence_refuses_each_write_of_a_worker_that_lost_the_job(connection: sa.Connection) -> None:
    fence = add_running(connection, attempt=4)
    before = row(connection, fence.id)

    for wrong in stale(fence):
        assert finish(connection, [Ending(wrong, State.DONE, "ok")]) == set()
        assert put_back(connection, Ending(wrong, State.PENDING, error=error_of("no"), delay=SECOND)) is False
        assert give_back(connection, [wrong], channel=None) == set()
        assert set_outcome(connection, wrong, "ok: late") is False
        assert settle(connection, wrong) is False

    assert row(connection, fence.id) == before


@pytest.mark.parametrize(
    "text",
    ["bad \x00 byte", "\ud800", "caf\udce9", "\\u0000", "x" * 10**6, "\U0001f600"],
    ids=lambda text: ascii(text[:9]),
)
def test_a5_any_text_of_a_handlers_making_is_recorded_with_its_batch(connection: sa.Connection, text: str) -> None:
    fences = [add_running(connection) for _ in range(3)]
    verdict = judge(Ended(text), failures=0, max_attempts=5, retry=Exponential())
    error = as_json(describe(ValueError(text), attempt=1, worker="w"))
    endings = [
        Ending(fences[0], State.DONE, "ok: good"),
        Ending(fences[1], verdict.state, verdict.outcome),
        Ending(fences[2], State.DEAD, "err", error),
    ]

    assert finish(connection, endings) == {fence.id for fence in fences}

    expected = storable(text)
    assert row(connection, fences[1].id)["outcome"] == storable(f"ok: {text}")
    assert [each["message"] for each in row(connection, fences[2].id)["errors"]] == [expected]


def test_an_error_is_added_to_the_history_with_the_databases_time(connection: sa.Connection) -> None:
    fence = add_running(connection, attempt=2, failures=1, errors=[{"attempt": 1, "message": "first"}])

    finish(connection, [Ending(fence, State.DEAD, "err", error_of("second", 2))])

    first, second = row(connection, fence.id)["errors"]
    assert first == {"attempt": 1, "message": "first"}
    at = second.pop("at")
    assert second == json.loads(error_of("second", 2))
    assert connection.scalar(sa.select(sa.cast(at, sa.TIMESTAMP(timezone=True)) == NOW))


@pytest.mark.parametrize("end", ["finish", "put back"])
def test_of_a_long_history_the_oldest_error_is_dropped(connection: sa.Connection, end: str) -> None:
    for kept, numbers in ((24, range(25)), (25, range(1, 26))):
        fence = add_running(connection, errors=[{"message": str(n)} for n in range(kept)])
        ending = Ending(fence, State.DEAD if end == "finish" else State.PENDING, "err", error_of(str(kept)))

        finish(connection, [ending]) if end == "finish" else put_back(connection, ending)

        assert [error["message"] for error in row(connection, fence.id)["errors"]] == [str(n) for n in numbers]


def test_a_failed_job_waits_for_its_delay_by_the_databases_clock(connection: sa.Connection) -> None:
    fence = add_running(connection, failures=1, run_at=NOW - 3600 * SECOND, created_at=NOW - 7200 * SECOND)
    before = row(connection, fence.id)

    assert put_back(connection, Ending(fence, State.PENDING, "err", error_of("no"), delay=4 * SECOND))

    after = row(connection, fence.id)
    (error,) = after.pop("errors")
    assert error["message"] == "no"
    expected = {**before, "state": "pending", "worker_id": None, "failures": 2, "run_at": now(connection) + 4 * SECOND}
    del expected["errors"]
    assert after == expected  # also F17: created_at is what it was


@pytest.mark.parametrize("delay", [timedelta(0), SECOND, timedelta(days=3650)], ids=str)
def test_f15_a_snooze_counts_no_failure(connection: sa.Connection, delay: timedelta) -> None:
    fence = add_running(connection, failures=1, max_attempts=5)
    before = row(connection, fence.id)

    assert put_back(connection, Ending(fence, State.PENDING, delay=delay))

    run_at = now(connection) + delay
    assert row(connection, fence.id) == {**before, "state": "pending", "worker_id": None, "run_at": run_at}


def test_a_job_put_back_without_a_delay_keeps_its_place(connection: sa.Connection) -> None:
    fence = add_running(connection, run_at=NOW - 3600 * SECOND)
    before = row(connection, fence.id)

    assert put_back(connection, Ending(fence, State.PENDING))

    assert row(connection, fence.id) == {**before, "state": "pending", "worker_id": None}


def test_f13_a_delay_and_a_count_of_any_size_are_written(connection: sa.Connection) -> None:
    fence = add_running(connection, failures=5_000, max_attempts=10_000)

    assert put_back(connection, Ending(fence, State.PENDING, "err", error_of("no"), delay=timedelta(minutes=10)))

    after = row(connection, fence.id)
    assert (after["state"], after["failures"]) == ("pending", 5_001)
    assert after["run_at"] == now(connection) + timedelta(minutes=10)


def test_jobs_given_back_are_pending_at_no_cost(connection: sa.Connection) -> None:
    fences = [add_running(connection, attempt=n, failures=n - 1) for n in (3, 1, 2)]
    lost = add_running(connection, OTHER)
    before = {fence.id: row(connection, fence.id) for fence in [*fences, lost]}

    given = give_back(connection, [*reversed(fences), replace(lost, worker_id=ME)], channel=None)

    assert given == {fence.id for fence in fences}
    for fence in fences:
        assert row(connection, fence.id) == {**before[fence.id], "state": "pending", "worker_id": None}
    assert row(connection, lost.id) == before[lost.id]


def test_nothing_to_give_back_is_no_statement(connection: sa.Connection) -> None:
    assert give_back(connection, [], channel="jobq") == set()


def test_a1_what_carries_the_workers_id_and_is_unknown_to_it_goes_back(connection: sa.Connection) -> None:
    known, unknown = add_running(connection), add_running(connection, queue="email", priority=0)
    waiting, others = add_job(connection), add_running(connection, OTHER)
    before = {each: row(connection, each) for each in (known.id, unknown.id, waiting, others.id)}

    positions = give_back_unknown(connection, worker_id=ME, held=[known], channel=None)

    assert positions == [Position("email", 0, before[unknown.id]["run_at"])]
    changed = {**before[unknown.id], "state": "pending", "worker_id": None}
    assert {each: row(connection, each) for each in before} == {**before, unknown.id: changed}


def test_a1_a_later_attempt_than_the_one_that_is_held_is_unknown(connection: sa.Connection) -> None:
    held, also_held = add_running(connection, attempt=2), add_running(connection, attempt=2)
    earlier = Fence(held.id, 1, ME)

    positions = give_back_unknown(connection, worker_id=ME, held=[earlier, also_held], channel=None)

    assert len(positions) == 1
    assert running_on(connection, ME) == [also_held.id]


def test_what_is_given_back_is_told_once_a_lane_with_its_earliest_job(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        spans = (5, 9, 7)
        fences = [add_running(connection, run_at=sa.func.to_timestamp(1_000_000_000 + n)) for n in spans]
        fences += [add_running(connection, queue="email", priority=0, run_at=sa.func.to_timestamp(1_000_000_000.25))]

    with listening(engine) as told:
        with engine.begin() as connection:
            give_back(connection, fences, channel="jobq")
        assert told() == ["default|1|1000000005.000000", "email|0|1000000000.250000"]

        with engine.begin() as connection:
            give_back(connection, fences, channel="jobq")  # pending by now: refused, so nothing to tell
        assert told() == []


def test_without_a_channel_nobody_is_told_and_a_rollback_tells_nobody(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        fence = add_running(connection)

    with listening(engine) as told:
        with engine.connect() as connection:
            assert give_back(connection, [fence], channel="jobq") == {fence.id}
            connection.rollback()
        with engine.begin() as connection:
            assert give_back(connection, [fence], channel=None) == {fence.id}
        assert told() == []


def test_only_the_earliest_position_of_a_lane_is_told(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        base = now(connection)

    with listening(engine) as told:
        with engine.begin() as connection:
            announce(connection, [Position("q", 1, base + n * SECOND) for n in (3, 1, 2)], channel="jobq")
            announce(connection, [], channel="jobq")
        (text,) = told()

    assert text == f"q|1|{(base + SECOND).timestamp():.6f}"


def test_the_text_of_a_job_that_completed_in_its_own_transaction_is_written_later(connection: sa.Connection) -> None:
    fence = add_running(connection)
    finish(connection, [Ending(fence, State.DONE)])
    before = row(connection, fence.id)

    assert set_outcome(connection, fence, "ok: sent")

    assert row(connection, fence.id) == {**before, "outcome": "ok: sent"}


def test_two_ends_of_one_job_leave_one(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        fence = add_running(connection)

    with engine.connect() as first:
        assert finish(first, [Ending(fence, State.DONE, "ok: first")]) == {fence.id}
        with in_thread(engine, lambda second: finish(second, [Ending(fence, State.DEAD, "err: second")])) as late:
            first.commit()
            assert late.result(timeout=30) == set()

    with engine.connect() as connection:
        assert row(connection, fence.id)["outcome"] == "ok: first"
        assert running_on(connection, ME) == []
