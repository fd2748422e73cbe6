"""One table: every call, through every driver, in jobq's own schema and in another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

import pytest
import sqlalchemy as sa
from callers import Caller

import jobq
from jobq.tables import all_jobs, finished_jobs, jobs

pytestmark = pytest.mark.anyio
app = jobq.App()
AWARE = sa.DateTime(timezone=True)
LATER = datetime(2130, 6, 1, 10, 0, 0, 250_000, tzinfo=UTC)
HOSTILE = "é\"'\\ %s %(a)s :b {c} ?; -- \u2028"
VALUES: dict[str, Any] = {
    "text": HOSTILE,
    "count": 2**53 + 1,
    "share": 0.1,
    "is_new": True,
    "price": Decimal("10.50"),
    "day": date(2024, 2, 29),
    "at": LATER,
    "span": timedelta(days=1, microseconds=5),
    "key": UUID(int=5),
    "none": None,
}


@app.handler("email.send", queue="email", max_attempts=8)
async def send_email(to: str, subject: str = "Hello") -> None: ...


@app.handler("user.sync", unique=True)
def sync(user_id: int) -> None: ...


@app.handler("every.type", unique=True)
def every_type(
    text: str,
    count: int,
    share: float,
    is_new: bool,
    price: Decimal,
    day: date,
    at: datetime,
    span: timedelta,
    key: UUID,
    none: str | None,
) -> None: ...


def numbers(count: int) -> Any:
    return sa.func.generate_series(1, count, type_=sa.Integer).column_valued("n")


async def enqueue(caller: Caller) -> None:
    given = await caller.call("enqueue", send_email, HOSTILE, subject="s")

    (row,) = await caller.rows()
    assert given == jobq.Enqueued(row.id, created=True)
    assert (row.kind, row.queue, row.max_attempts, row.priority) == ("email.send", "email", 8, 1)
    assert (row.run_at, row.attempt, row.worker_id, row.unique_key) == (row.created_at, 0, None, None)
    assert send_email.codec.decode(row.text) == {"to": HOSTILE, "subject": "s"}
    assert row.callsite.startswith("tests/drivers/callers.py:")


async def enqueue_many(caller: Caller) -> None:
    rows = [send_email.args(str(n)) if n % 2 else {"to": str(n)} for n in range(50)]
    rows.append(send_email.options(priority=0, run_at=LATER, timeout=timedelta(seconds=5)).args(HOSTILE))

    given = await caller.call("enqueue_many", send_email, rows)

    stored = await caller.rows()
    assert [answer.id for answer in given] == [row.id for row in stored]
    assert [row.args["to"] for row in stored] == [*map(str, range(50)), HOSTILE]
    assert (stored[-1].priority, stored[-1].run_at, stored[-1].meta) == (0, LATER, {"timeout": 5.0})


async def enqueue_many_keyed(caller: Caller) -> None:
    held = await caller.call("enqueue", sync, 2)

    given = await caller.call("enqueue_many", sync, [sync.args(n) for n in (1, 2, 1, 3)])

    assert [answer.created for answer in given] == [True, False, False, True]
    assert (given[1].id, given[2].id) == (held.id, given[0].id)
    strict = sync.options(on_conflict="raise")
    with pytest.raises(jobq.UniqueKeyError):
        await caller.call("enqueue_many", strict, [sync.args(n) for n in (4, 3)])
    assert len(await caller.rows()) == 3


async def enqueue_select(caller: Caller) -> None:
    n = numbers(20)
    select = sa.select(
        sa.cast(n, sa.Text).label("to"),
        sa.literal(HOSTILE).label("subject"),
        sa.case((n > 10, sa.cast(LATER, AWARE))).label("run_at"),
        (n % 4).label("priority"),
    ).order_by(n)

    assert await caller.call("enqueue_select", send_email, select, options_from=("run_at", "priority")) == 20

    rows = await caller.rows()
    assert [(row.args["to"], row.priority, row.args["subject"]) for row in rows] == [
        (str(n), n % 4, HOSTILE) for n in range(1, 21)
    ]
    assert [row.run_at == LATER for row in rows] == [False] * 10 + [True] * 10
    assert {row.queue for row in rows} == {"email"}


async def enqueue_select_keyed(caller: Caller) -> None:
    await caller.call("enqueue", sync, 2)
    select = sa.select(numbers(3).label("user_id"))

    with pytest.raises(jobq.UniqueKeyError, match="is held by job"):
        await caller.call("enqueue_select", sync.options(on_conflict="raise"), select)
    assert await caller.call("enqueue_select", sync, select) == 2
    assert await caller.call("enqueue_select", sync, select) == 0


async def enqueue_select_refused(caller: Caller) -> None:
    nan = sa.select(*[sa.cast(sa.literal(value), SQL[name]).label(name) for name, value in ALMOST.items()])
    with pytest.raises(jobq.ArgsError, match=r"args\.share: NaN, infinity or too large .*, in 1 row"):
        await caller.call("enqueue_select", every_type, nan)
    wrong = sa.select(sa.literal("a").label("to"), numbers(5).label("priority"))
    with pytest.raises(jobq.OptionError, match="priority: not from 0 to 3, in 2 rows"):
        await caller.call("enqueue_select", send_email, wrong, options_from=("priority",))
    assert await caller.rows() == []


async def one_key_for_one_content(caller: Caller) -> None:
    """Of each type the same JSON, hence the same derived key, from Python, in bulk and from a SELECT."""
    given = await caller.call("enqueue", every_type, **VALUES)
    select = sa.select(*[sa.cast(sa.literal(value), SQL[name]).label(name) for name, value in VALUES.items()])

    assert (await caller.call("enqueue_many", every_type, [VALUES])) == [jobq.Enqueued(given.id, created=False)]
    assert await caller.call("enqueue_select", every_type, select) == 0
    assert await caller.call("enqueue_select", every_type.options(unique=False), select) == 1
    first, second = await caller.rows()
    assert first.text == second.text
    assert every_type.codec.decode(first.text) == VALUES


SQL: dict[str, Any] = {
    "text": sa.Text,
    "count": sa.BigInteger,
    "share": sa.Double,
    "is_new": sa.Boolean,
    "price": sa.Numeric,
    "day": sa.Date,
    "at": AWARE,
    "span": sa.Interval,
    "key": sa.Uuid,
    "none": sa.Text,
}
ALMOST = {**VALUES, "share": "NaN"}


async def key_created_then_held(caller: Caller) -> None:
    keyed = send_email.options(unique_key=HOSTILE)
    first = await caller.call("enqueue", keyed, "a")

    assert first.created
    assert await caller.call("enqueue", keyed, "b") == jobq.Enqueued(first.id, created=False)
    with pytest.raises(jobq.UniqueKeyError) as caught:
        await caller.call("enqueue", keyed.options(on_conflict="raise"), "c")
    assert (caught.value.key, caught.value.holder) == (HOSTILE, first.id)
    assert [row.unique_key for row in await caller.rows()] == [HOSTILE]


async def key_replaced_and_rescheduled(caller: Caller) -> None:
    keyed = send_email.options(unique_key=HOSTILE)
    first = await caller.call("enqueue", keyed, "a")

    latest = keyed.options(on_conflict="replace", run_at=LATER, priority=2, keep=timedelta(hours=1))
    assert await caller.call("enqueue", latest, HOSTILE) == jobq.Enqueued(first.id, created=False, changed=True)
    (row,) = await caller.rows()
    assert (row.args, row.run_at, row.priority, row.meta) == ({"to": HOSTILE}, LATER, 2, {"keep": 3600.0})
    hour, limit = timedelta(hours=1), timedelta(hours=1, microseconds=5)
    debounced = keyed.options(on_conflict="reschedule", delay=hour, max_wait=limit)
    given = await caller.call("enqueue_many", debounced, [{"to": "b"}, debounced.options(unique_key="new").args("c")])
    assert [(answer.created, answer.changed) for answer in given] == [(False, True), (True, False)]
    row, new = await caller.rows()
    assert (row.args, row.run_at - row.created_at, new.run_at - new.created_at) == ({"to": HOSTILE}, hour, hour)
    await caller.call("enqueue", keyed.options(on_conflict="reschedule", run_at=LATER, max_wait=limit), "d")
    assert (await caller.rows())[0].run_at - row.created_at == limit


async def sql_function(caller: Caller) -> None:
    """Called as a program that knows nothing of jobq would: through the session, by text."""
    name = caller.session.bind.dialect.identifier_preparer.quote_schema(caller.schema)
    function = sa.text(f"SELECT {name}.enqueue('k', CAST(:args AS jsonb), unique_key => :key)")
    given = [(await caller.do("execute", function, {"args": '{"a": 1}', "key": HOSTILE})).scalar_one() for _ in "ab"]

    (row,) = await caller.rows()
    assert (given, row.args, row.unique_key, row.queue) == ([row.id, row.id], {"a": 1}, HOSTILE, "default")


async def delay_and_run_at(caller: Caller) -> None:
    await caller.call("enqueue", send_email.options(delay=timedelta(hours=1, microseconds=5)), "a")
    await caller.call("enqueue", send_email.options(run_at=LATER), "b")
    await caller.call("enqueue", send_email.options(run_at=datetime.min.replace(tzinfo=UTC)), "c")

    delayed, later, past = await caller.rows()
    assert delayed.run_at - delayed.created_at == timedelta(hours=1, microseconds=5)
    assert later.run_at == LATER
    assert past.run_at == past.created_at


async def options(caller: Caller) -> None:
    chosen = send_email.options(
        queue="slow", priority=3, max_attempts=2, timeout=timedelta(seconds=5), keep=timedelta(hours=1)
    )
    await caller.call("enqueue", chosen, "a")
    await caller.call("enqueue", jobq.kind("some.kind", queue="q"), n=[1, {"a": None}], x=2**70)

    first, second = await caller.rows()
    assert (first.queue, first.priority, first.max_attempts, first.meta) == ("slow", 3, 2, {"timeout": 5, "keep": 3600})
    assert (second.kind, second.max_attempts, second.args) == ("some.kind", None, {"n": [1, {"a": None}], "x": 2**70})


async def get_and_jobs(caller: Caller) -> None:
    first = await caller.call("enqueue", send_email.options(run_at=LATER), HOSTILE)
    second = await caller.call("enqueue", sync, 7)

    job = await caller.call("get", first.id)
    assert (job.id, job.kind, job.args, job.run_at) == (first.id, "email.send", {"to": HOSTILE}, LATER)
    assert (job.state, job.errors) == (jobq.State.PENDING, ())
    assert await caller.call("get", 2**62) is None
    assert [each.id for each in await caller.call("jobs")] == [second.id, first.id]
    assert [each.id for each in await caller.call("jobs", all_jobs.c.kind == "user.sync", limit=5)] == [second.id]


async def cancel_and_retry(caller: Caller) -> None:
    ids = [(await caller.call("enqueue", sync, n)).id for n in range(3)]

    assert (await caller.call("cancel", ids[0])).ids == (ids[0],)
    assert set((await caller.call("cancel", all_jobs.c.kind == "user.sync")).ids) == set(ids[1:])
    assert {job.state for job in await caller.call("jobs")} == {jobq.State.CANCELLED}
    with pytest.raises(jobq.NotPendingError):
        await caller.call("cancel", ids[0])
    assert (await caller.call("retry", ids[0])).ids == (ids[0],)
    with pytest.raises(jobq.NotEndedError):
        await caller.call("retry", ids[0])
    assert set((await caller.call("retry", all_jobs.c.state == "cancelled")).ids) == set(ids[1:])
    assert [row.id for row in await caller.rows()] == ids


async def stats_and_workers(caller: Caller) -> None:
    await caller.call("enqueue", send_email, "a")
    await caller.call("enqueue", send_email.options(delay=timedelta(hours=1)), "a")

    stats = await caller.call("stats")
    assert [(each.queue, each.ready, each.scheduled) for each in stats.queues if each.ready] == [("email", 1, 1)]
    assert (stats.states[jobq.State.PENDING], stats.live_workers) == (2, 0)
    assert await caller.call("workers") == []


async def why(caller: Caller) -> None:
    waits = await caller.call("enqueue", send_email, "a")
    later = await caller.call("enqueue", send_email.options(delay=timedelta(hours=1)), "a")

    first, second = [await caller.call("why", each.id) for each in (waits, later)]
    assert (first.cause, first.also) == (jobq.Cause.NO_WORKER, ())
    assert [reason.cause for reason in second.also] == [jobq.Cause.SCHEDULED]
    with pytest.raises(jobq.UnknownJobError):
        await caller.call("why", 2**62)


async def recent_and_counted(caller: Caller) -> None:
    await caller.call("enqueue", sync, 7)
    now = sa.func.now()
    row = sa.select(*jobs.c, sa.literal("done"), sa.literal("fail: no"), now, now)
    names = [*[column.name for column in jobs.c], "state", "outcome", "finished_at", "expires_at"]
    await caller.do("execute", sa.insert(finished_jobs).from_select(names, row, include_defaults=False))
    await caller.do("execute", sa.delete(jobs))

    found = await caller.call("recent", sync.args(7), within=timedelta(hours=1), outcome="fail")
    assert (found.kind, found.args) == ("user.sync", {"user_id": 7})
    assert await caller.call("recent", sync.args(7), within=timedelta(hours=1)) is None
    assert await caller.call("recent", sync.args(8), within=timedelta(hours=1), outcome=None) is None
    stats = await caller.call("stats")
    assert [(each.outcome, each.finished) for each in stats.outcomes] == [("fail", 1)]


async def rollbacks(caller: Caller) -> None:
    await caller.call("enqueue", send_email, "kept for now")
    savepoint = caller.session.begin_nested()
    await (savepoint.start() if caller.is_async else Done())
    await caller.call("enqueue", send_email, "dropped")
    await caller.call("enqueue_select", send_email, sa.select(sa.literal("dropped").label("to")))
    rolled_back = savepoint.rollback()
    await (rolled_back if caller.is_async else Done())
    assert [row.args["to"] for row in await caller.rows()] == ["kept for now"]

    await caller.do("rollback")
    assert await caller.rows() == []


class Done:
    """Awaited where a sync session has done it already."""

    def __await__(self) -> Any:
        return iter(())


async def refusals(caller: Caller) -> None:
    await caller.call("enqueue", send_email, "a")
    for wrong in ({"to": "\0"}, {"to": "\ud800"}, {"too": "a"}, {}):
        with pytest.raises(jobq.ArgsError):
            await caller.call("enqueue", send_email, **wrong)
    with pytest.raises(jobq.ArgsError):
        await caller.call("enqueue_select", send_email, sa.select(sa.literal(1).label("to")))
    assert len(await caller.rows()) == 1


Call: TypeAlias = Callable[[Caller], Awaitable[None]]
CALLS: list[Call] = [
    enqueue,
    enqueue_many,
    enqueue_many_keyed,
    enqueue_select,
    enqueue_select_keyed,
    enqueue_select_refused,
    one_key_for_one_content,
    key_created_then_held,
    key_replaced_and_rescheduled,
    sql_function,
    delay_and_run_at,
    options,
    get_and_jobs,
    cancel_and_retry,
    stats_and_workers,
    why,
    recent_and_counted,
    rollbacks,
    refusals,
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
async def test_a_call_does_the_same_through_every_driver_and_in_any_schema(caller: Caller, call: Call) -> None:
    await call(caller)

    counts = await caller.counts()
    assert counts == {**dict.fromkeys(counts, 0), caller.schema: len(await caller.rows())}
