"""Jobs that run in a test's own transaction, with a Session or a Connection."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import anyio
import pytest
import shop_jobs as shop
import sqlalchemy as sa
from shop_jobs import COUNT, HOUR, app, noted
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session, sessionmaker

import jobq
from jobq.tables import finished_jobs, jobs, queues, slots, workers
from jobq.testing import Worked, drain, enqueued, work_once


class Base(DeclarativeBase): ...


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[str]


@pytest.fixture(autouse=True)
def nothing_noted() -> Iterator[None]:
    noted()
    yield
    noted()


def test_one_job_runs_without_the_loop(session: Session) -> None:
    job = jobq.enqueue(session, shop.note, "hello")

    worked = work_once(app, session)

    assert worked is not None
    assert (worked.job.id, worked.word, worked.job.state, worked.job.outcome) == (job.id, "ok", "done", "ok: hello")
    assert noted() == ["hello"]
    assert work_once(app, session) is None


def test_the_smallest_priority_goes_first_and_then_what_is_due_first(session: Session) -> None:
    jobq.enqueue(session, shop.note.options(queue="a"), "third")
    jobq.enqueue(session, shop.note.options(queue="a"), "fourth")
    old = jobq.enqueue(session, shop.note.options(queue="z"), "second")
    session.execute(sa.update(jobs).where(jobs.c.id == old.id).values(run_at=sa.func.now() - HOUR))
    jobq.enqueue(session, shop.note.options(priority=0), "first")

    drain(app, session)

    assert noted() == ["first", "second", "third", "fourth"]


def test_only_the_queues_that_are_named_are_served(session: Session) -> None:
    jobq.enqueue(session, shop.note.options(queue="a"), "a")
    jobq.enqueue(session, shop.note.options(queue="b", delay=HOUR), "b")

    assert drain(app, session, queues=["c"], scheduled=True) == []
    drain(app, session, queues=["b"], scheduled=True)

    assert noted() == ["b"]


def test_a_kind_without_a_handler_waits(session: Session) -> None:
    jobq.enqueue(session, jobq.kind("unknown", queue="q"))

    assert drain(app, session, scheduled=True) == []


@pytest.mark.parametrize("handler", [shop.fail, shop.fail_async], ids=["plain", "async"])
def test_what_a_handler_raises_is_recorded_and_comes_through(handler: Any, session: Session) -> None:
    job = jobq.enqueue(session, handler)

    with pytest.raises(OSError, match="disk full") as raised:
        work_once(app, session)

    assert raised.traceback[-1].name == handler.function.__name__
    waiting = jobq.get(session, job.id)
    assert waiting is not None
    assert (waiting.state, waiting.failures, waiting.run_at - waiting.created_at) == ("pending", 1, HOUR)
    assert waiting.errors[0].message == "disk full"
    assert work_once(app, session) is None  # it waits for its retry


def test_a_retry_runs_when_what_is_scheduled_is_asked_for(session: Session) -> None:
    jobq.enqueue(session, shop.fail)

    attempts = drain(app, session, scheduled=True, raise_errors=False)

    assert [(each.word, each.job.state) for each in attempts] == [("retry", "pending"), ("dead", "dead")]
    assert all(isinstance(each.error, OSError) for each in attempts)
    assert noted() == [1, 2]
    assert len(attempts[1].job.errors) == 2


def test_signals_that_are_answers_are_not_raised(session: Session) -> None:
    jobq.enqueue(session, shop.snooze)
    jobq.enqueue(session, shop.pause)
    jobq.enqueue(session, shop.pause)

    snoozed, paused = drain(app, session)

    assert (snoozed.word, snoozed.job.run_at - snoozed.job.created_at) == ("snooze", HOUR)
    assert (paused.word, paused.job.state) == ("pause", "pending")
    assert drain(app, session, queues=["paused"], scheduled=True) == []  # the queue stands still
    jobq.enqueue(session, shop.permanent)
    with pytest.raises(jobq.Permanent):
        work_once(app, session)


def test_args_that_do_not_fit_are_dead_at_once_and_stay_as_they_are(session: Session) -> None:
    job = jobq.enqueue(session, jobq.kind("note", queue="q"), txt="x")

    with pytest.raises(jobq.ArgsError, match="unknown argument"):
        work_once(app, session)

    dead = jobq.get(session, job.id)
    assert dead is not None
    assert (dead.state, dead.args) == ("dead", {"txt": "x"})


@pytest.mark.parametrize("handler", [shop.write, shop.write_async], ids=["plain", "async"])
def test_a_handlers_transaction_is_a_savepoint_of_the_tests_own(handler: Any, session: Session) -> None:
    job = jobq.enqueue(session, handler, 7)

    first, second = drain(app, session)

    assert (first.job.id, first.job.outcome) == (job.id, "ok: wrote 7")
    assert (second.job.kind, noted()) == ("note", ["wrote 7"])
    assert session.scalar(COUNT) == 1


def test_what_fails_within_the_transaction_leaves_no_effect_and_is_retried(session: Session) -> None:
    job = jobq.enqueue(session, shop.write_and_fail, 1)

    with pytest.raises(OSError, match="disk full"):
        work_once(app, session)

    found = jobq.get(session, job.id)
    assert found is not None
    assert (found.state, found.failures) == ("pending", 1)
    assert session.scalar(COUNT) == 0


def test_an_error_of_the_database_in_a_transaction_is_recorded(session: Session) -> None:
    session.execute(shop.WRITE, {"n": 1})
    jobq.enqueue(session, shop.write, 1)

    (worked,) = drain(app, session, raise_errors=False)

    assert (worked.word, worked.job.errors[0].error) == ("retry", "sqlalchemy.exc.IntegrityError")


def test_a_handler_that_aborts_the_tests_transaction_is_named(session: Session) -> None:
    own = jobq.App()

    @own.handler("aborts")
    def aborts() -> None:
        session.connection().execute(sa.text("SELECT 1/0"))

    job = jobq.enqueue(session, aborts)

    with pytest.raises(sa.exc.DataError) as raised:
        work_once(own, session, raise_errors=False)

    assert raised.value.__notes__ == [f"job {job.id}: its end is not recorded, the handler aborted the transaction"]


def test_nothing_is_left_after_the_tests_rollback(session: Session, shared_engine: sa.Engine) -> None:
    jobq.enqueue(session, shop.write, 1)
    jobq.enqueue(session, shop.in_order, "a")
    drain(app, session)

    assert session.scalar(sa.select(sa.func.count()).select_from(workers)) == 0
    with shared_engine.connect() as other:
        for table in (jobs, finished_jobs, workers, queues, slots):
            assert other.scalar(sa.select(sa.func.count()).select_from(table)) == 0


def test_a_job_that_enqueues_itself_is_stopped_with_a_reason(session: Session) -> None:
    jobq.enqueue(session, shop.endless)

    with pytest.raises(jobq.WorkerError, match="5 jobs have run and there are more: does 'endless' enqueue itself"):
        drain(app, session, most=5)


def test_a_fifo_queue_waits_for_its_head_and_goes_on_after_its_retry(session: Session) -> None:
    for text in ("a", "bad", "b"):
        jobq.enqueue(session, shop.in_order.options(max_attempts=2), text)

    assert [each.word for each in drain(app, session, raise_errors=False)] == ["ok", "retry"]
    assert [each.word for each in drain(app, session, raise_errors=False, scheduled=True)] == ["dead", "ok"]
    assert noted() == ["a", "bad", "bad", "b"]


def test_throttles_do_not_hold_up_a_test(session: Session) -> None:
    own = jobq.App()
    own.queue("slow", concurrency=1, throttle=jobq.per_minute(1))
    handler = own.handler("slow", queue="slow")(lambda: None)
    for _ in range(3):
        jobq.enqueue(session, handler)

    assert len(drain(own, session)) == 3


def test_pytests_own_signals_pass_whatever_is_asked_for(session: Session) -> None:
    jobq.enqueue(session, shop.skip_test)

    with pytest.raises(pytest.skip.Exception):
        work_once(app, session, raise_errors=False)


def test_a_plain_handler_runs_in_the_tests_thread_with_its_context_variables(session: Session) -> None:
    own, variable = jobq.App(), ContextVar("variable", default="unset")

    @own.handler("look")
    def look() -> str:
        assert jobq.current().job.kind == "look"
        return f"{variable.get()} {threading.current_thread() is here}"

    here = threading.current_thread()
    variable.set("set")
    jobq.enqueue(session, look)

    worked = work_once(own, session)

    assert worked is not None
    assert worked.job.outcome == "ok: set True"
    with pytest.raises(jobq.ContextError):
        jobq.current()


def test_the_lifespan_is_open_for_the_call_and_its_state_is_at_hand(session: Session) -> None:
    own, told = jobq.App(), list[str]()

    @own.lifespan
    async def opened() -> AsyncIterator[str]:
        async with anyio.create_task_group():  # has to be left by the task that entered it
            told.append("opened")
            yield "state"
            told.append("closed")

    @own.handler("plain")
    def plain() -> str:
        return f"{jobq.current().state} {told}"

    @own.handler("async")
    async def in_loop() -> str:
        await anyio.lowlevel.checkpoint()
        return f"{jobq.current().state} {told}"

    for handler in (plain, in_loop, plain):
        jobq.enqueue(session, handler)

    done = drain(own, session)

    assert [each.job.outcome for each in done] == ["ok: state ['opened']"] * 3
    assert told == ["opened", "closed"]
    jobq.enqueue(session, in_loop)
    (given,) = drain(own, session, state="given")
    assert given.job.outcome == "ok: given ['opened', 'closed']"


def test_a_lifespan_that_fails_is_told_as_it_is(session: Session) -> None:
    own = jobq.App()

    @own.lifespan
    async def opened() -> AsyncIterator[None]:
        raise RuntimeError("no key for the API")
        yield

    own.handler("k")(lambda: None)

    with pytest.raises(RuntimeError, match="no key for the API"):
        drain(own, session)


def test_what_is_around_jobs_is_entered_and_errors_are_told(session: Session) -> None:
    own, told = jobq.App(), list[str]()

    @contextmanager
    def around() -> Iterator[None]:
        told.append("in")
        yield
        told.append("out")

    own.around(around)
    own.on_error(lambda event: told.append(f"{event.error} {event.final}"))
    own.handler("ok")(lambda: told.append("run"))  # type: ignore[arg-type,return-value,func-returns-value]
    bad = own.handler("bad", max_attempts=1)(shop.fail.function)
    jobq.enqueue(session, jobq.kind("ok", queue="q"))
    jobq.enqueue(session, bad)

    drain(own, session, raise_errors=False)

    assert told[:3] == ["in", "run", "out"]
    assert "disk full True" in told


@pytest.mark.anyio
async def test_an_async_handler_where_a_loop_runs_asks_for_the_twin(session: Session) -> None:
    jobq.enqueue(session, shop.note, "plain")
    assert [each.word for each in drain(app, session)] == ["ok"]
    jobq.enqueue(session, shop.note_async, "async")

    with pytest.raises(jobq.ContextError, match="an event loop runs here: await the `_async` twin"):
        drain(app, session)


def test_what_the_session_has_not_flushed_is_seen_and_what_it_has_read_is_fresh(connection: sa.Connection) -> None:
    own = jobq.App()

    @own.handler("pay")
    def pay(order_id: int) -> None:
        with jobq.current().transaction() as inner:
            inner.get_one(Order, order_id).state = "paid"

    Base.metadata.create_all(connection)
    sessions = sessionmaker(connection, join_transaction_mode="create_savepoint")
    for bind in (sessions(), scoped_session(sessions)):
        bind.add(order := Order(state="new"))
        bind.flush()
        jobq.enqueue(bind, pay, jobq.pk(order))
        bind.add(Order(state="pending"))

        drain(own, bind)

        assert order.state == "paid"
        bind.rollback()


def test_a_connection_will_do(connection: sa.Connection) -> None:
    jobq.enqueue(connection, shop.note, "x")

    worked = work_once(app, connection)

    assert isinstance(worked, Worked)
    assert enqueued(connection) == []


@pytest.mark.parametrize("bind", [None, sa.create_engine("postgresql+psycopg://"), "a url"])
def test_what_is_no_session_is_refused(bind: Any) -> None:
    with pytest.raises(jobq.BindError):
        work_once(app, bind)


def test_what_a_handler_reports_and_gives_is_kept(session: Session) -> None:
    reporting = jobq.App()

    @reporting.handler("copies", max_attempts=2, retry=lambda failures, error: HOUR)
    def copies() -> jobq.Ok:
        context = jobq.current()
        page = (context.last_checkpoint or {"page": 0})["page"] + 1
        context.progress(page / 2, f"page {page}")
        context.checkpoint({"page": page})
        if page == 1:
            raise ConnectionError("away")
        return jobq.Ok("copied", result=[page])

    jobq.enqueue(session, copies)

    first, second = drain(reporting, session, scheduled=True, raise_errors=False)

    assert (first.word, first.job.checkpoint, first.job.progress) == (
        "retry",
        {"page": 1},
        jobq.Progress(0.5, "page 1", 1),
    )
    assert (second.word, second.job.checkpoint, second.job.result) == ("ok", {"page": 2}, [2])
