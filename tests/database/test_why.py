"""What `jobq.why` reads, and that it agrees with the statements that claim."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended, add_job, add_worker
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from store_rows import START

import jobq
from jobq import Cause
from jobq.answers.decide import decide
from jobq.answers.facts import Facts, facts_of
from jobq.errors import BindError, OptionError, OptionTypeError, UnknownJobError
from jobq.statements import why as statements
from jobq.store.claiming import LaneAsk, claim, claim_slots
from jobq.tables import jobs, queues, slots
from jobq_cli.app import run

pytestmark = pytest.mark.duty("read")

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
CAPACITY = {Cause.IN_LINE, Cause.BUSY}  # who is first, and how much room there is, is not what a claim decides
ERROR = {"attempt": 1, "at": "2026-01-02T03:04:05+00:00", "error": "shop.CardDeclined", "message": "no \x1b[31m"}


def add_queue(connection: sa.Connection, name: str = "default", **values: Any) -> None:
    connection.execute(sa.insert(queues).values(name=name, **values))


def add_slot(connection: sa.Connection, queue: str = "default", n: int = 1, **values: Any) -> None:
    connection.execute(sa.insert(slots).values(queue=queue, n=n, **values))


def facts_about(connection: sa.Connection, id_: int) -> Facts:
    facts = facts_of(connection.execute(statements.facts(), {"id": id_}).mappings().one(), id_)
    assert facts is not None
    return facts


def cause_of(connection: sa.Connection, id_: int) -> Cause:
    return jobq.why(connection, id_).cause


def test_a_due_job_with_a_worker_is_held_up_by_nothing(connection: sa.Connection) -> None:
    due = add_job(connection)
    assert cause_of(connection, due) is Cause.NO_WORKER

    add_worker(connection, 7)

    assert cause_of(connection, due) is Cause.DUE


@pytest.mark.parametrize(
    ("values", "cause"),
    [
        pytest.param({"lease_until": NOW - SECOND}, Cause.NO_WORKER, id="its lease ran out"),
        pytest.param({"queues": ["other"]}, Cause.NO_WORKER_FOR_QUEUE, id="another queue"),
        pytest.param({"queues": ["other", "default"]}, Cause.DUE, id="its queue"),
        pytest.param({"kinds": ["other"]}, Cause.NO_HANDLER, id="another kind"),
        pytest.param({"kinds": None}, Cause.NO_HANDLER, id="no kinds at all"),
    ],
)
def test_workers_are_asked_for_their_lease_queues_and_kinds(
    connection: sa.Connection, values: dict[str, Any], cause: Cause
) -> None:
    due = add_job(connection)

    add_worker(connection, 7, **values)

    assert cause_of(connection, due) is cause


def test_a_paused_queue_says_until_when_and_why(connection: sa.Connection) -> None:
    due = add_job(connection)
    add_worker(connection, 7)
    until = jobq.pause(connection, "default", HOUR, reason="out of credit")

    answer = jobq.why(connection, due)

    assert (answer.cause, answer.reason.until, answer.reason.command) == (Cause.PAUSED, until, "jobq resume default")
    assert "because: out of credit" in str(answer)


@pytest.mark.parametrize("until", ["infinity", "11000-01-01 00:00:00+00"])
def test_a_pause_by_hand_may_be_longer_than_python_counts(connection: sa.Connection, until: str) -> None:
    due = add_job(connection)
    add_worker(connection, 7)
    add_queue(connection, paused_until=sa.cast(sa.literal(until, sa.Text), queues.c.paused_until.type))

    assert "until it is resumed" in str(jobq.why(connection, due))


def test_a_retry_says_which_and_after_what_error(connection: sa.Connection) -> None:
    add_worker(connection, 7)
    values = {"attempt": 1, "failures": 1, "max_attempts": 5, "errors": [ERROR], "run_at": NOW + MINUTE}

    answer = jobq.why(connection, add_job(connection, **values))
    put_off = jobq.why(connection, add_job(connection, **{**values, "attempt": 2}))

    assert answer.cause is Cause.RETRY
    assert "waits for retry 2 of 5, at " in str(answer)
    assert "after shop.CardDeclined: no" in str(answer)
    assert put_off.cause is Cause.SCHEDULED
    assert "was put off after attempt 2" in str(put_off)


@pytest.mark.parametrize("errors", [{}, 7, ["x", {"attempt": "9" * 5000}], [None], {"-1": 1}])
def test_errors_that_nobody_can_read_spoil_no_answer(connection: sa.Connection, errors: object) -> None:
    add_worker(connection, 7)

    assert cause_of(connection, add_job(connection, errors=errors, attempt=1, failures=1)) is Cause.DUE


def test_used_up_attempts_are_those_of_the_row(connection: sa.Connection) -> None:
    add_worker(connection, 7)

    assert cause_of(connection, add_job(connection, failures=3, max_attempts=3)) is Cause.ATTEMPTS_USED_UP
    assert cause_of(connection, add_job(connection, queue="b", failures=3)) is Cause.DUE


def test_a_queue_at_its_limit_names_who_holds_the_slots(connection: sa.Connection) -> None:
    add_worker(connection, 7)
    add_queue(connection, concurrency=2)
    for n, holder in enumerate((7, 8), 1):
        add_job(connection, id=40 + n, worker_id=holder, attempt=1)
        add_slot(connection, n=n, worker_id=holder, job_id=40 + n, attempt=1)

    answer = jobq.why(connection, add_job(connection))

    assert (answer.cause, answer.reason.jobs) == (Cause.LIMIT, (41, 42))
    assert "limit of 2 at a time: job 41 on worker host:7, job 42 on worker 8, which is gone" in str(answer)
    assert answer.reason.command == "jobq queue set default --concurrency 3"


def test_a_slot_of_a_cancelled_job_is_said_to_wait_for_its_handler(connection: sa.Connection) -> None:
    add_worker(connection, 7)
    add_queue(connection, concurrency=1)
    add_slot(connection, n=1, worker_id=7, job_id=41, attempt=1)

    answer = jobq.why(connection, add_job(connection))

    assert "limit of 1 at a time: job 41 on worker host:7, which has ended but its handler has not" in str(answer)
    assert answer.reason.command is None


def test_a_slot_that_is_not_ready_holds_its_queue_back(connection: sa.Connection) -> None:
    add_worker(connection, 7)
    add_queue(connection, concurrency=1)
    add_slot(connection, ready_at=NOW + MINUTE)

    assert cause_of(connection, add_job(connection)) is Cause.THROTTLED


def test_the_head_of_a_fifo_queue_is_named_with_what_holds_that_one_up(connection: sa.Connection) -> None:
    add_worker(connection, 7)
    add_queue(connection, fifo=True)
    add_slot(connection)
    add_job(connection, run_at=NOW + HOUR, priority=0)
    odd = add_job(connection, kind="odd", priority=0)
    between, last = add_job(connection), add_job(connection)

    answer, head = jobq.why(connection, last), jobq.why(connection, odd)

    assert (answer.cause, answer.reason.jobs, answer.reason.command) == (Cause.HEAD, (odd,), f"jobq why {odd}")
    assert "2 jobs are before it in its FIFO queue default" in str(answer)
    assert f"{head}" in str(answer)
    assert head.cause is Cause.NO_HANDLER
    assert "is before it in its FIFO queue" in str(jobq.why(connection, between))


def test_jobs_before_it_are_those_that_a_live_worker_would_take_first(connection: sa.Connection) -> None:
    add_worker(connection, 7, concurrency=1)
    add_job(connection, worker_id=7, attempted_at=NOW)
    for values in ({"priority": 0}, {}, {"kind": "odd"}, {"run_at": NOW + HOUR, "priority": 0}, {"queue": "other"}):
        add_job(connection, **values)
    job = add_job(connection)
    for values in ({"priority": 2}, {}):
        add_job(connection, **values)

    answer = jobq.why(connection, job)

    assert [answer.cause, *(reason.cause for reason in answer.also)] == [Cause.IN_LINE, Cause.BUSY]
    assert "2 due jobs come before it in queue default (host:7 runs 1 of 1)" in str(answer)


def test_a_running_job_says_who_holds_it_and_whether_that_one_lives(connection: sa.Connection) -> None:
    add_worker(connection, 7)
    add_worker(connection, 8, lease_until=NOW - SECOND)
    runs, lost, orphan = (add_job(connection, worker_id=worker, attempted_at=NOW) for worker in (7, 8, 9))

    assert "held by worker host:7, whose last beat was 0s ago" in str(jobq.why(connection, runs))
    assert [cause_of(connection, each) for each in (runs, lost, orphan)] == [Cause.RUNNING, Cause.LOST, Cause.LOST]
    assert "worker 9, which is gone; a live worker is about to rescue it" in str(jobq.why(connection, orphan))


@pytest.mark.parametrize("state", ["done", "dead", "cancelled"])
def test_an_ended_job_says_since_when_and_how(connection: sa.Connection, state: str) -> None:
    answer = jobq.why(connection, add_ended(connection, state, outcome="err: ValueError: no"))

    assert (answer.cause, answer.state) == (state, state)
    assert "err: ValueError: no" in str(answer)


def test_a_row_that_another_session_has_locked_is_found_out(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        add_worker(connection, 7)
        due = add_job(connection)
    locks = sa.select(jobs.c.id).where(jobs.c.id == due).with_for_update()
    with engine.connect() as other, engine.connect() as connection:
        pid = other.scalar(sa.select(sa.func.pg_backend_pid()))
        other.execute(locks)
        held = jobq.why(connection, due)
        other.rollback()
        free = jobq.why(connection, due)
        connection.execute(locks)
        mine = jobq.why(connection, due)

    assert held.cause is Cause.LOCKED
    assert f"process {pid}" in str(held)
    assert (free.cause, mine.cause) == (Cause.DUE, Cause.DUE)


def test_an_id_that_is_not_there_is_an_error_and_what_is_no_id_too(connection: sa.Connection) -> None:
    with pytest.raises(UnknownJobError, match="no job 42"):
        jobq.why(connection, 42)
    with pytest.raises(OptionError):
        jobq.why(connection, 0)
    with pytest.raises(OptionTypeError):
        jobq.why(connection, "42")  # type: ignore[arg-type]
    with pytest.raises(BindError, match="use why"):
        jobq.why_async(connection, 1)  # type: ignore[arg-type, unused-coroutine]


@pytest.mark.anyio
async def test_the_async_twin_answers_the_same(engine: sa.Engine, database_url: str) -> None:
    with engine.begin() as connection:
        due = add_job(connection)
    async_engine = create_async_engine(database_url)
    try:
        async with AsyncSession(async_engine) as session:
            answer = await jobq.why_async(session, due)
    finally:
        await async_engine.dispose()

    assert answer.cause is Cause.NO_WORKER


def some_state(connection: sa.Connection, chance: random.Random) -> list[int]:
    """A fleet and a queue in whatever state; the waiting jobs of it."""
    times = [NOW - HOUR, NOW - SECOND, NOW + HOUR]
    for worker in range(chance.randrange(3)):
        add_worker(
            connection, 100 + worker, queues=chance.choice([None, ["default"], ["other"]]),
            kinds=chance.choice([["email.send"], ["odd"], ["email.send", "odd"]]),
            lease_until=chance.choice([*times, NOW + HOUR]),
        )  # fmt: skip
    limit = chance.choice([{}, {}, {"fifo": True}, {"fifo": True}, {"concurrency": 1}, {"concurrency": 2}])
    if limit or chance.random() < 0.5:
        add_queue(connection, **limit, paused_until=chance.choice([None, None, *times]))
    for n in range(1, chance.randrange(4) if limit else 1):
        held = {"worker_id": 100, "job_id": 1, "attempt": 1} if chance.random() < 0.3 else {}
        add_slot(connection, n=n, ready_at=chance.choice(times), **held)
    return [
        add_job(
            connection, kind=chance.choice(["email.send", "odd"]), priority=chance.choice([0, 1]),
            run_at=chance.choice(times), failures=chance.choice([0, 0, 3]), max_attempts=chance.choice([None, 3]),
        )
        for _ in range(3)
    ]  # fmt: skip


def claimed_by_any(connection: sa.Connection, facts: Facts) -> set[int]:
    """What the claims of the live workers take, each for itself and undone again."""
    found: set[int] = set()
    lanes = [LaneAsk("default", priority, START, 0, 100) for priority in range(4)]
    for worker in facts.live:
        if worker.serves("default"):
            who: dict[str, Any] = {"worker_id": worker.id, "kinds": sorted(worker.kinds), "most": 100}
            savepoint = connection.begin_nested()
            claims = [claim(connection, lanes, **who)]
            claims += [claim_slots(connection, ["default"], in_order=flag, **who) for flag in (True, False)]
            savepoint.rollback()
            found |= {job.id for each in claims for job in each.jobs}
    return found


@pytest.mark.parametrize("seed", range(6))
def test_what_nothing_holds_up_is_claimed_and_what_something_holds_up_is_not(
    connection: sa.Connection, seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(50):
        savepoint = connection.begin_nested()
        waiting = some_state(connection, chance)
        claimed = claimed_by_any(connection, facts_about(connection, waiting[0]))
        for id_ in waiting:
            answer = decide(facts_about(connection, id_))
            causes = {answer.cause, *(reason.cause for reason in answer.also)} - CAPACITY
            if Cause.IN_LINE not in {answer.cause, *(reason.cause for reason in answer.also)} or causes - {Cause.DUE}:
                assert (id_ in claimed) is (causes <= {Cause.DUE}), answer
        savepoint.rollback()


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `jobq why` prints."""

    def call(*arguments: object) -> str:
        assert run(["why", *map(str, arguments)]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return call


def test_the_command_says_the_cause_what_else_and_what_to_type(rows: sa.Connection, said: Callable[..., str]) -> None:
    due = add_job(rows)
    add_queue(rows, paused_until=NOW + HOUR, pause_reason="\x1b[2J mail \n is down")

    first, second, third = said(due).splitlines()
    found = json.loads(said(due, "--json"))

    assert first == f"job {due} waits: there is no live worker"
    assert second.startswith("  and it waits: its queue default is paused until ")
    assert second.endswith("because: \\x1b[2J mail \\n is down")
    assert third == "  next: jobq run MODULE:APP"
    assert (found["id"], found["state"], found["cause"]) == (due, "pending", "no worker")
    assert [reason["cause"] for reason in found["also"]] == ["paused"]


def test_f69_why_shows_no_args(rows: sa.Connection, said: Callable[..., str]) -> None:
    due = add_job(rows, args={"token": "hunter2"})

    assert "hunter2" not in said(due) + said(due, "--json")


def test_f66_why_of_an_unknown_id_is_one_line_and_exit_code_1(
    rows: sa.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["why", "42"]) == 1

    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "no job 42" in err
