"""Wrong handlers, wrong use of what they run in, of workers and of the looking and repairing. As in wrong.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import sqlalchemy as sa
from right import app, billing, send_email
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

import jobq
import jobq_migrations


# wrong: type variable "R" of function cannot be "int" || return type "int" is incompatible with.*"Outcome . str
@app.handler("int")
def returns_a_number() -> int:
    return 1


# wrong: "R" of function cannot be "Coroutine.*dict || "CoroutineType.*dict.*incompatible with.*"Outcome . str
@app.handler("dict")
async def returns_a_dict() -> dict[str, int]:
    return {}


# wrong: type variable "R" of function cannot be "bool" || return type "bool" is incompatible with.*"Outcome . str
@app.handler("bool")
def returns_a_truth() -> bool:
    return True


# wrong: type variable "R" of function cannot be "Permanent" || return type "Permanent" is incompatible.*"Outcome . str
@app.handler("signal")
def returns_what_is_to_be_raised() -> jobq.Permanent:
    return jobq.Permanent("no recipient")


# wrong: "R" of function cannot be "AsyncIterator || return type "AsyncIterator.int." is incompatible.*"Outcome . str
@app.handler("async generator")
async def yields(x: int) -> AsyncIterator[int]:
    yield x


# wrong: "R" of function cannot be "Iterator || return type "Iterator.str." is incompatible.*"Outcome . str
@app.handler("generator")
def yields_text(x: int) -> Iterator[str]:
    yield str(x)


def outcomes(which: int) -> jobq.Outcome:
    if which == 1:
        # wrong: Argument 1 to "Ok" has incompatible type "int" || Literal.5.*parameter "text" of type "str"
        return jobq.Ok(5)
    if which == 2:
        # wrong: Unexpected keyword argument "reason" for "Fail" || No parameter named "reason"
        return jobq.Fail(reason="x")
    if which == 5:
        # wrong: Argument "result" to "Ok" .* "set.int." || "set.int.".*parameter "result"
        return jobq.Ok("x", result={1, 2})
    if which == 7:
        # wrong: Unexpected keyword argument "reslt" for "Ok" || No parameter named "reslt"
        return jobq.Ok("x", reslt=1)
    if which == 6:
        # wrong: Too many positional arguments for "Skip" || Expected 1 positional argument
        return jobq.Skip("x", {"a": 1})
    if which == 3:
        # wrong: Argument 1 to "Snooze" .* "int"; expected "timedelta" || parameter "delay" of type "timedelta"
        raise jobq.Snooze(5)
    if which == 4:
        # wrong: Missing positional argument "delay" in call to "Snooze" || Argument missing for parameter "delay"
        raise jobq.Snooze()
    # wrong: Exception must be derived from BaseException || "Skip" does not derive from BaseException
    raise jobq.Skip("fresh")


def in_a_plain_handler() -> None:
    with jobq.current().transaction() as session:
        # wrong: "Session" has no attribute "run_sync" || attribute "run_sync" for class "Session"
        session.run_sync(lambda s: None)
    # wrong: Property "cancelled" defined in "Context" is read-only || assign to attribute "cancelled"
    jobq.current().cancelled = True
    # wrong: "CurrentJob" has no attribute "attempts" || attribute "attempts" for class "CurrentJob"
    print(jobq.current().job.attempts)
    # wrong: Argument 1 to "progress" of "Context" .* "str"; expected "float" || Literal.*parameter "fraction"
    jobq.current().progress("40 %")
    # wrong: Argument 2 to "progress" of "Context" .* "int"; expected "str" || Literal.*parameter "message"
    jobq.current().progress(0.4, 10)
    # wrong: Missing positional argument "fraction" in call to "progress" || Argument missing for parameter "fraction"
    jobq.current().progress(message="page 4")
    # wrong: Unexpected keyword argument "page" || Expected 1 more positional
    jobq.current().checkpoint(page=4)
    # wrong: Argument 1 to "checkpoint" of "Context" .* "list.int." || "list.int.".*parameter "state"
    jobq.current().checkpoint([1])
    # wrong: Property "is_lost" defined in "Context" is read-only || assign to attribute "is_lost"
    jobq.current().is_lost = True
    # wrong: Too many arguments for "check" of "Context" || Expected 0 positional arguments
    jobq.current().check(1)
    # wrong: Property "last_checkpoint" defined in "Context" is read-only || assign to attribute "last_checkpoint"
    jobq.current().last_checkpoint = {}
    # wrong: "Callable.*Context.*has no attribute "job" || attribute "job" for class "FunctionType"
    print(jobq.current.job)


async def in_an_async_handler() -> None:
    async with jobq.current().transaction() as session:
        # wrong: "AsyncSession" has no attribute "query" || attribute "query" for class "AsyncSession"
        session.query(1)
        # wrong: Argument 1 to "enqueue" .* "AsyncSession" || "AsyncSession" .* "session" of type "Bind"
        jobq.enqueue(session, send_email, "a")
    with jobq.current().transaction() as plain:
        # wrong: Argument 1 to "enqueue_async" .* "Session" || "Session" .* "session" of type "AsyncBind"
        await jobq.enqueue_async(plain, send_email, "a")


async def workers(engine: sa.Engine, session: Session) -> None:
    # wrong: Missing positional argument "engine" in call to "Worker" || Argument missing for parameter "engine"
    jobq.Worker(app)
    # wrong: Argument 1 to "Worker" .* "Registry"; expected "App" || "Registry" .* parameter "app" of type "App"
    jobq.Worker(billing, engine)
    # wrong: Argument 2 to "Worker" has incompatible type "Session" || "Session" .* parameter "engine"
    jobq.Worker(app, session)
    # wrong: Unexpected keyword argument "concurency" for "Worker" || No parameter named "concurency"
    jobq.Worker(app, engine, concurency=20)
    # wrong: "lease" to "Worker" .* "int"; expected "timedelta" || Literal.60.*parameter "lease" of type "timedelta"
    jobq.Worker(app, engine, lease=60)
    # wrong: "threads" to "Worker" .* "str"; expected "int . None" || Literal.*parameter "threads"
    jobq.Worker(app, engine, threads="8")
    # wrong: Unexpected keyword argument "thread" for "Worker" || No parameter named "thread"
    jobq.Worker(app, engine, thread=8)
    # wrong: "max_left_behind" to "Worker" .* "timedelta" || "timedelta" .* parameter "max_left_behind"
    jobq.Worker(app, engine, max_left_behind=timedelta(1))
    # wrong: "dask_scheduler" to "Worker" .* "int"; expected "str . None" || Literal.*parameter "dask_scheduler"
    jobq.Worker(app, engine, dask_scheduler=8786)
    # wrong: "stall" to "Worker" .* "int"; expected "timedelta . None" || Literal.*parameter "stall"
    jobq.Worker(app, engine, stall=300)
    # wrong: Too many positional arguments for "stop" of "Worker" || Expected 0 positional arguments
    jobq.Worker(app, engine).stop(True)
    # wrong: "Coroutine.*must be used || async function call is not used; use "await"
    jobq.Worker(app, engine).run()
    # wrong: Argument 1 to "migrate" has incompatible type "Session" || "Session" .* parameter "engine"
    jobq.migrate(session)
    # wrong: "wait" to "migrate" .* "int"; expected "timedelta" || Literal.60.*parameter "wait" of type "timedelta"
    jobq.migrate(engine, wait=60)
    # wrong: "to" to "upgrade" has incompatible type "int"; expected "str" || Literal.1.*parameter "to" of type "str"
    jobq_migrations.upgrade(to=1)
    # wrong: Too many positional arguments for "downgrade" || Expected 0 positional
    jobq_migrations.downgrade("base")


def looking_and_repairing(s: Session, a: AsyncSession, e: sa.Engine) -> None:
    # wrong: Argument 2 to "get" has incompatible type "str" || Literal.*parameter "id" of type "int"
    jobq.get(s, "42")
    # wrong: Argument 1 to "get" has incompatible type "AsyncSession" || "AsyncSession" .* "session" of type "Bind"
    jobq.get(a, 42)
    # wrong: Item "None" of "Job . None" has no attribute "state" || "state" is not a known attribute of "None"
    print(jobq.get(s, 42).state)
    # wrong: Argument 2 to "jobs" .* "str"; expected "ColumnElement || Literal.*parameter "predicates"
    jobq.jobs(s, "state = 'dead'")
    # wrong: Unexpected keyword argument "state" for "jobs" || No parameter named "state"
    jobq.jobs(s, state="dead")
    # wrong: "limit" to "jobs" .* "str"; expected "int || Literal.*parameter "limit" of type "int
    jobq.jobs(s, limit="5")
    # wrong: Module has no attribute "every_job" || "every_job" is not a known attribute of module "jobq.tables"
    jobq.jobs(s, jobq.tables.every_job.c.state == "dead")
    # wrong: "type.State." has no attribute "FAILED" || attribute "FAILED" for class "type.State
    jobq.jobs(s, jobq.tables.all_jobs.c.state == jobq.State.FAILED)
    # wrong: Argument 2 to "retry" .* "str"; expected "int . ColumnElement || Literal.*parameter "which"
    jobq.retry(s, "42")
    # wrong: Argument 2 to "retry" .* "list.int."; expected "int . ColumnElement || "list.int.".*parameter "which"
    jobq.retry(s, [1, 2])
    # wrong: "Refusal" has no attribute "reason" || attribute "reason" for class "Refusal"
    print(jobq.retry(s, 1, 2).refused[0].reason)
    # wrong: Unexpected keyword argument "runing" for "cancel" || No parameter named "runing"
    jobq.cancel(s, 1, runing=True)
    # wrong: Argument 1 to "stats" has incompatible type "Engine" || "Engine" .* "session" of type "Bind"
    jobq.stats(e)
    # wrong: Argument 1 to "workers" has incompatible type "AsyncSession" || "AsyncSession" .* "session" of type "Bind"
    jobq.workers(a)


def waiting(s: Session, e: sa.Engine) -> None:
    # wrong: Argument 1 to "wait_for" has incompatible type "Session" || "Session" .* parameter "engine"
    jobq.wait_for(s, 1)
    # wrong: Argument 2 to "wait_for" has incompatible type "str" || Literal.*parameter "id" of type "int"
    jobq.wait_for(e, "1")
    # wrong: Too many positional arguments for "wait_for" || Expected 2 positional arguments
    jobq.wait_for(e, 1, timedelta(seconds=5))
    # wrong: "timeout" to "wait_for" .* "int"; expected "timedelta . None" || Literal.5.*parameter "timeout"
    jobq.wait_for(e, 1, timeout=5)
    # wrong: "Coroutine.*has no attribute "state" || attribute "state" for class "Coroutine
    print(jobq.wait_for_async(e, 1).state)


async def looking_and_repairing_async(s: Session, a: AsyncSession) -> None:
    # wrong: Argument 1 to "get_async" has incompatible type "Session" || "Session" .* "session" of type "AsyncBind"
    await jobq.get_async(s, 42)
    # wrong: "Coroutine.*has no attribute "state" || attribute "state" for class "Coroutine
    print(jobq.get_async(a, 1).state)
    # wrong: Argument 1 to "jobs_async" has incompatible type "Session" || "Session" .* "session" of type "AsyncBind"
    await jobq.jobs_async(s)
    # wrong: Argument 1 to "retry_async" has incompatible type "Session" || "Session" .* "session" of type "AsyncBind"
    await jobq.retry_async(s, 1)
    # wrong: "Coroutine.*must be used || async function call is not used; use "await"
    jobq.retry_async(a, 1)
    # wrong: Argument 2 to "cancel_async" has incompatible type "str" || Literal.*parameter "which"
    await jobq.cancel_async(a, "1")
    # wrong: Argument 1 to "stats_async" has incompatible type "Session" || "Session" .* "session" of type "AsyncBind"
    await jobq.stats_async(s)
    # wrong: Argument 1 to "workers_async" has incompatible type "Session" || "Session" .* "session" of type "AsyncBind"
    await jobq.workers_async(s)
