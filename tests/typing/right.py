# pyright: strict
"""Right calls of everything public: no type checker complains. Read by test_typing.py, never executed."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict, assert_type

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_scoped_session, async_sessionmaker
from sqlalchemy.orm import Session, scoped_session, sessionmaker

import jobq
from jobq.tables import all_jobs, finished_jobs, jobs

app = jobq.App()
billing = jobq.Registry(queue="billing")
app.include(billing)
app.queue("email", weight=3)


@app.handler("email.send", queue="email", max_attempts=8, timeout=timedelta(seconds=30))
async def send_email(to: str, subject: str = "Hello") -> None: ...


@billing.handler("invoice.pdf", executor="thread", unique=("invoice_id",), keep=timedelta(days=30))
def render_invoice(invoice_id: int, lang: str = "en") -> jobq.Outcome | None:
    if lang == "tlh":
        raise jobq.Permanent("no such language")
    if invoice_id == 0:
        raise jobq.Snooze(timedelta(minutes=5), "not there yet")
    return jobq.Skip("already rendered")


@app.handler("named", priority=0, unique=True, on_interrupt="fail", retry=jobq.Exponential(cap=timedelta(hours=1)))
def only_named(*, queue: str, delay: int = 3, session: str = "", handler: str = "") -> str:
    return f"{queue} {delay} {session} {handler}"


@app.handler("answers", retry=lambda failures, error: timedelta(seconds=failures) if str(error) else None)
async def answer(order_ids: list[int], at: datetime | None = None) -> jobq.Ok | jobq.Fail:
    return jobq.Ok(str(at)) if order_ids else jobq.Fail()


@app.handler("patient", retry=jobq.ByError({ValueError: None, OSError: jobq.Exponential()}))
def without_arguments() -> str | None: ...


class CardDeclined(Exception): ...


@app.handler("charge", no_retry_on=(CardDeclined, KeyboardInterrupt))
async def charge(card: str) -> None:
    raise CardDeclined(card)


class Mailer:
    def __init__(self, registry: jobq.Registry) -> None:
        self.send = registry.handler("mailer.send")(self.deliver)

    def deliver(self, to: str) -> None: ...

    @staticmethod
    @app.handler("mailer.count")
    def count(day: int) -> None: ...


def with_client(client: object, order_id: int) -> None: ...


ship = app.handler("ship")(functools.partial(with_client, object()))


@app.lifespan
async def shared() -> AsyncIterator[dict[str, Any]]:
    yield {}


@asynccontextmanager
async def pool() -> AsyncGenerator[int, None]:
    yield 1


jobq.App().lifespan(pool)


@app.around
@contextmanager
def logged() -> Generator[None, None, None]:
    yield


@app.around
def opened() -> AbstractAsyncContextManager[int]:
    return pool()


@app.on_error
def report(event: jobq.ErrorEvent) -> None:
    print(event.attempt, event.final, type(event.error))


def sessions(session: Session, scoped: scoped_session[Session], connection: sa.Connection, engine: sa.Engine) -> None:
    assert_type(jobq.enqueue(session, send_email, "a@b.c"), jobq.Enqueued)
    jobq.enqueue(scoped, send_email, to="a@b.c", subject="Hi")
    jobq.enqueue(connection, render_invoice, 1, lang="fr")
    jobq.enqueue(sessionmaker(engine)(), send_email, "a@b.c")
    jobq.enqueue(session, only_named, queue="x", delay=2, session="a", handler="b")
    jobq.enqueue(session, answer, [1, 2], at=datetime.now(UTC))
    jobq.enqueue(session, without_arguments)
    jobq.enqueue(session, Mailer(billing).send, to="a@b.c")
    jobq.enqueue(session, Mailer.count, day=1)
    jobq.enqueue(session, ship, order_id=2)
    jobq.enqueue(session, jobq.kind("email.send", queue="email"), to="a@b.c", anything=1)
    enqueued = jobq.enqueue(session, send_email.options(delay=timedelta(minutes=5), priority=0), to="a@b.c")
    assert_type((enqueued.id, enqueued.created, enqueued.changed), tuple[int, bool, bool])


def options(session: Session) -> None:
    keyed = send_email.options(unique_key="welcome:7", on_conflict="raise", queue="slow", max_attempts=1)
    assert_type(keyed("a@b.c").close(), None)
    jobq.enqueue(session, keyed.options(unique_key=None, unique=("to",)), "a@b.c")
    jobq.enqueue(session, keyed.options(on_conflict="replace"), "a@b.c")
    minute = timedelta(minutes=1)
    debounced = render_invoice.options(on_conflict="reschedule", delay=minute, max_wait=10 * minute)
    jobq.enqueue_many(session, debounced, [debounced.args(1), {"invoice_id": 2}])
    later = datetime.now(UTC) + timedelta(days=1)
    jobq.enqueue(session, render_invoice.options(run_at=later, timeout=timedelta(1), keep=timedelta(1)), 7)
    jobq.enqueue(session, jobq.kind("x", queue="y").options(priority=3, unique=False), order_id=7)


def many(session: Session, addresses: list[str]) -> list[jobq.Enqueued]:
    jobq.enqueue_many(session, send_email, [{"to": address} for address in addresses])
    jobq.enqueue_many(session, send_email, (send_email.args(to=address) for address in addresses))
    bulk, first = send_email.options(queue="bulk"), send_email.options(priority=2)
    return jobq.enqueue_many(session, bulk, [first.args("a@b.c"), {"to": "b@c.d"}])


def selected(session: Session, users: sa.Table, order: object) -> None:
    addresses = sa.select(users.c.email.label("to"), users.c.since.label("run_at")).where(users.c.is_stale)
    assert_type(jobq.enqueue_select(session, send_email, addresses, options_from=["run_at"]), int)
    jobq.enqueue_select(session, send_email.options(delay=timedelta(1)), sa.union_all(addresses, addresses))
    jobq.enqueue(session, render_invoice, invoice_id=jobq.pk(order))


async def async_sessions(
    session: AsyncSession, scoped: async_scoped_session[AsyncSession], connection: AsyncConnection, engine: AsyncEngine
) -> None:
    assert_type(await jobq.enqueue_async(session, send_email, "a@b.c"), jobq.Enqueued)
    await jobq.enqueue_async(scoped, send_email, to="a@b.c", subject="Hi")
    await jobq.enqueue_async(connection, render_invoice.options(priority=3), 1, lang="fr")
    await jobq.enqueue_async(async_sessionmaker(engine)(), only_named, queue="x", session="a")
    await session.run_sync(jobq.enqueue, send_email, to="a@b.c")
    assert_type(
        await jobq.enqueue_many_async(session, send_email, [send_email.args("a@b.c"), {"to": "b@c.d"}]),
        list[jobq.Enqueued],
    )
    letters = sa.select(sa.literal("a@b.c").label("to"), sa.literal(0).label("priority"))
    assert_type(await jobq.enqueue_select_async(session, send_email, letters, options_from=("priority",)), int)
    assert_type(await jobq.get_async(session, 1), jobq.Job | None)
    assert_type(await jobq.jobs_async(scoped, jobs.c.queue == "email", limit=5), list[jobq.Job])
    assert_type(await jobq.retry_async(connection, 1, 2), jobq.Repaired)
    assert_type(await jobq.cancel_async(session, jobs.c.kind == "email.send", running=True), jobq.Repaired)
    assert_type((await jobq.stats_async(session)).queues, tuple[jobq.QueueStats, ...])
    assert_type(await jobq.workers_async(session), list[jobq.WorkerRow])
    assert_type(await jobq.why_async(session, 42), jobq.Why)


def looking_and_repairing(session: Session, scoped: scoped_session[Session], connection: sa.Connection) -> None:
    if (job := jobq.get(session, 42)) and job.state is jobq.State.DEAD:
        assert_type(job.errors, tuple[jobq.Failure, ...])
    assert_type(jobq.jobs(scoped, all_jobs.c.state == "dead", all_jobs.c.kind.in_(["a"]), limit=None), list[jobq.Job])
    assert_type(jobq.retry(session, 42).ids, tuple[int, ...])
    jobq.retry(connection, finished_jobs.c.state == jobq.State.DEAD)
    for refusal in jobq.cancel(session, 1, 2, 3, running=True).refused:
        print(refusal.id, refusal.error)
    assert_type(jobq.stats(connection).kinds, tuple[jobq.KindStats, ...])
    assert_type(jobq.workers(session), list[jobq.WorkerRow])
    answer = jobq.why(session, 42)
    assert_type(answer.also, tuple[jobq.Reason, ...])
    if answer.cause is jobq.Cause.PAUSED:
        assert_type(answer.reason.until, datetime | None)


def repairing_by_ones_own_tables(session: Session, paying: sa.Select[tuple[int]]) -> None:
    jobq.retry(session, jobs.c.args["tenant"].as_integer().in_(paying), jobs.c.kind == "email.send")
    assert_type(jobq.cancel(session, sa.exists().where(jobs.c.queue == "email")), jobq.Repaired)


async def calling_a_handler_calls_its_function() -> None:
    assert_type(await send_email("a@b.c"), None)
    assert_type(render_invoice(3), jobq.Outcome | None)
    assert_type(await answer([1]), jobq.Ok | jobq.Fail)
    assert_type(only_named(queue="x"), str)


class Point(TypedDict):
    page: int


@app.handler("copies")
def copies(point: Point) -> jobq.Ok | jobq.Skip:
    context = jobq.current()
    context.progress(0.4, "page 4 of 10")
    context.progress(1, message="all")
    context.checkpoint(point)
    context.checkpoint({"page": 4, "seen": [1, 2]})
    assert_type(context.last_checkpoint, dict[str, Any] | None)
    if context.is_lost:
        return jobq.Skip("elsewhere", result=None)
    return jobq.Ok("copied", result={"pages": 10, "names": ["a"]})


@app.handler("frames", executor="dask", resources={"GPU": 1, "MEMORY": 0.5})
def frames(frame: int) -> None:
    assert_type(jobq.current().check(), None)
    assert_type(jobq.current().cancelled, bool)


@app.handler("scales", executor="process")
def scales(path: str) -> str:
    return path


def results() -> list[jobq.Outcome]:
    texts: list[jobq.Outcome] = [jobq.Ok(result="text"), jobq.Ok(result=[1, "a"]), jobq.Ok(result=(1, None))]
    return [*texts, jobq.Ok(result=True), jobq.Ok(result=1.5), jobq.Fail("no", result=Point(page=1))]


def waiting(engine: sa.Engine) -> None:
    job = jobq.wait_for(engine, 42, timeout=timedelta(seconds=30))
    assert_type(job, jobq.Job)
    assert_type(job.progress, jobq.Progress | None)
    assert_type(job.checkpoint, dict[str, Any] | None)
    assert_type(jobq.wait_for("postgresql://localhost/shop", 42).state, jobq.State)


async def waiting_async(engine: AsyncEngine) -> None:
    assert_type(await jobq.wait_for_async(engine, 42), jobq.Job)
    try:
        await jobq.wait_for_async(sa.make_url("postgresql://localhost/shop"), 42, timeout=timedelta(seconds=30))
    except jobq.WaitTimeoutError as error:
        assert_type((error.id, error.state), tuple[int, str | None])
    except (jobq.UnknownJobError, jobq.StoppedError, jobq.ChildDiedError, jobq.MemoryLimitError) as error:
        print(error)


def inside_a_plain_handler() -> None:
    context = jobq.current()
    print(context.job.id, context.job.is_last, context.cancelled, context.state)
    with context.transaction() as session:
        assert_type(session, Session)
        jobq.enqueue(session, send_email, "a@b.c")


async def inside_an_async_handler() -> None:
    async with jobq.current().transaction() as session:
        assert_type(session, AsyncSession)
        await jobq.enqueue_async(session, send_email, "a@b.c")


async def working(engine: sa.Engine, async_engine: AsyncEngine) -> int:
    jobq.migrate(engine)
    jobq.migrate("postgresql://localhost/shop", lock_timeout=timedelta(seconds=1), wait=timedelta(0))
    jobq.Worker(app, "postgresql://localhost/shop", listen=False, name="w1")
    jobq.Worker(app, async_engine, grace=timedelta(0), lease=timedelta(seconds=9))
    jobq.Worker(app, engine, processes=4, max_jobs_per_child=1000, max_memory_per_child=512, app_path="shop.jobs:app")
    jobq.Worker(app, engine, threads=8, max_left_behind=0, dask_scheduler="tcp://head:8786", stall=timedelta(minutes=1))
    worker = jobq.Worker(app, engine, queues=["email"], concurrency=5, poll_interval=timedelta(seconds=1))
    worker.stop()
    worker.stop(now=True)
    assert_type(worker.stats(), jobq.WorkerStats)
    return await worker.run()
