"""Wrong calls of enqueue: each is refused, for the reason above it. Read by test_typing.py, never executed.

The words of mypy, then those of pyright; `-`: it sees nothing wrong there; `&&`: it complains twice.
"""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa
from right import Mailer, answer, app, billing, only_named, render_invoice, send_email, ship, without_arguments
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_scoped_session, async_sessionmaker
from sqlalchemy.orm import Session, scoped_session, sessionmaker

import jobq


class Clerk:
    @app.handler("clerk.file")
    def file(self, order_id: int) -> None: ...


def arguments(s: Session) -> None:
    # wrong: Unexpected keyword argument "subjct" || No parameter named "subjct"
    jobq.enqueue(s, send_email, to="a", subjct="b")
    # wrong: Unexpected keyword argument "too" || No parameter named "too" && Argument missing for parameter "to"
    jobq.enqueue(s, send_email, too="a")
    # wrong: "to" to "enqueue" has incompatible type "int"; expected "str" || Literal.1.*parameter "to" of type "str"
    jobq.enqueue(s, send_email, to=1)
    # wrong: Argument 3 to "enqueue" has incompatible type "int" || Literal.1.*parameter "to" of type "str"
    jobq.enqueue(s, send_email, 1)
    # wrong: "to" to "enqueue" has incompatible type "None" || "None".*parameter "to" of type "str"
    jobq.enqueue(s, send_email, to=None)
    # wrong: Missing positional argument "to" || Argument missing for parameter "to"
    jobq.enqueue(s, send_email)
    # wrong: Too many arguments for "enqueue" || Expected 2 positional arguments
    jobq.enqueue(s, send_email, "a", "b", "c")
    # wrong: multiple values for keyword argument "to" || Parameter "to" is already assigned
    jobq.enqueue(s, send_email, "a", to="a")
    # wrong: Too many arguments for "enqueue" || Expected 0 positional arguments
    jobq.enqueue(s, without_arguments, 1)
    # wrong: Too many positional arguments for "enqueue" || Expected 0 positional arguments
    jobq.enqueue(s, only_named, "x")
    # wrong: List item 0 has incompatible type "str"; expected "int" || parameter "order_ids" of type "list.int
    jobq.enqueue(s, answer, ["1"])
    # wrong: Argument 3 to "enqueue" .* "tuple.int, int."; expected "list.int || parameter "order_ids" of type "list.int
    jobq.enqueue(s, answer, (1, 2))
    # wrong: "at" to "enqueue" has incompatible type "str"; expected "datetime || tomorrow.*parameter "at" of type
    jobq.enqueue(s, answer, [1], at="tomorrow")
    # wrong: "to" to "enqueue" has incompatible type "int" || Literal.1.*parameter "to" of type "str"
    jobq.enqueue(s, Mailer(billing).send, to=1)
    # wrong: Missing positional argument "self" || Argument missing for parameter "self"
    jobq.enqueue(s, Clerk().file, order_id=1)
    # wrong: - || No parameter named "order" && Argument missing for parameter "order_id"
    jobq.enqueue(s, ship, order=1)  # mypy forgets the parameters of a functools.partial
    # wrong: Unexpected keyword argument "delay" || No parameter named "delay"
    jobq.enqueue(s, send_email, to="a", delay=timedelta(1))
    # wrong: Argument 2 to "args" of "Kind" has incompatible type "int" || Literal.5.*parameter "subject" of type "str"
    send_email.args("a", 5)
    # wrong: Argument 1 to "__call__" of "Handler" .* "str"; expected "int" || parameter "invoice_id" of type "int"
    render_invoice("x")


def handlers(s: Session) -> None:
    # wrong: "str"; expected "Kind || email.send.*"handler" of type "Kind && for ParamSpec "P@enqueue" are missing
    jobq.enqueue(s, "email.send", to="a")
    # wrong: "Callable.*expected "Kind || "FunctionType".*to "Kind && Arguments for ParamSpec "P@enqueue" are missing
    jobq.enqueue(s, lambda: None)
    # wrong: "Outcome . None"; expected "Kind || "Outcome . None" .* "handler" && for ParamSpec "P@enqueue" are missing
    jobq.enqueue(s, render_invoice(1))
    # wrong: Too few arguments for "enqueue" || Expected 1 more positional argument
    jobq.enqueue(s)
    # wrong: Module has no attribute "enqeue" || "enqeue" is not a known attribute of module "jobq"
    jobq.enqeue(s, send_email, to="a")
    # wrong: Missing named argument "queue" for "kind" || Argument missing for parameter "queue"
    jobq.kind("email.send")
    # wrong: "Kind.*not callable || Object of type "Kind.*is not callable
    jobq.kind("email.send", queue="email")()


def sync_binds(
    s: Session,
    a: AsyncSession,
    scoped: async_scoped_session[AsyncSession],
    c: AsyncConnection,
    e: sa.Engine,
    maker: sessionmaker[Session],
) -> None:
    # wrong: Argument 1 to "enqueue" has incompatible type "AsyncSession" || "AsyncSession" .* "session" of type "Bind"
    jobq.enqueue(a, send_email, to="a")
    # wrong: Argument 1 to "enqueue" .* "async_scoped_session || "async_scoped_session.* "session" of type "Bind"
    jobq.enqueue(scoped, send_email, to="a")
    # wrong: Argument 1 to "enqueue" .* "AsyncConnection" || "AsyncConnection" .* "session" of type "Bind"
    jobq.enqueue(c, send_email, to="a")
    # wrong: Argument 1 to "enqueue" .* "Engine" || "Engine" .* "session" of type "Bind"
    jobq.enqueue(e, send_email, to="a")
    # wrong: Argument 1 to "enqueue" .* "sessionmaker || "sessionmaker.* "session" of type "Bind"
    jobq.enqueue(maker, send_email, to="a")
    # wrong: Argument 1 to "enqueue_many" .* "AsyncSession" || "AsyncSession" .* "session" of type "Bind"
    jobq.enqueue_many(a, send_email, [])


async def async_binds(
    s: Session,
    scoped: scoped_session[Session],
    c: sa.Connection,
    a: AsyncSession,
    e: AsyncEngine,
    maker: async_sessionmaker[AsyncSession],
) -> None:
    # wrong: Argument 1 to "enqueue_async" has incompatible type "Session" || "Session" .* "session" of type "AsyncBind"
    await jobq.enqueue_async(s, send_email, to="a")
    # wrong: Argument 1 to "enqueue_async" .* "scoped_session || "scoped_session.* "session" of type "AsyncBind"
    await jobq.enqueue_async(scoped, send_email, to="a")
    # wrong: Argument 1 to "enqueue_async" .* "Connection" || "Connection" .* "session" of type "AsyncBind"
    await jobq.enqueue_async(c, send_email, to="a")
    # wrong: Argument 1 to "enqueue_async" .* "AsyncEngine" || "AsyncEngine" .* "session" of type "AsyncBind"
    await jobq.enqueue_async(e, send_email, to="a")
    # wrong: Argument 1 to "enqueue_async" .* "async_sessionmaker || "async_sessionmaker.* "session" of type "AsyncBind"
    await jobq.enqueue_async(maker, send_email, to="a")
    # wrong: "to" to "enqueue_async" has incompatible type "int" || Literal.3.*parameter "to" of type "str"
    await jobq.enqueue_async(a, send_email, to=3)
    # wrong: Unexpected keyword argument "subjct" || No parameter named "subjct"
    await jobq.enqueue_async(a, send_email, to="a", subjct="b")
    # wrong: "Coroutine.*must be used || async function call is not used; use "await"
    jobq.enqueue_async(a, send_email, to="a")
    # wrong: "Coroutine.*has no attribute "id" || attribute "id" for class "Coroutine
    print(jobq.enqueue_async(a, send_email, to="a").id)
    # wrong: Argument 1 to "enqueue_many_async" .* "Session" || "Session" .* "session" of type "AsyncBind"
    await jobq.enqueue_many_async(s, send_email, [])
    # wrong: "Coroutine.*must be used || async function call is not used; use "await"
    jobq.enqueue_many_async(a, send_email, [])
    # wrong: Argument 1 to "run_sync" .* expected "Callable.*Session, Handler.*, int || parameter "to" of type "str"
    await a.run_sync(jobq.enqueue, send_email, to=1)
    # wrong: in "await" .actual type "Enqueued" || "Enqueued" is not awaitable
    await jobq.enqueue(s, send_email, to="a")


def many(s: Session) -> None:
    # wrong: Argument 1 to "args" of "Kind" has incompatible type "int" || Literal.1.*parameter "to" of type "str"
    jobq.enqueue_many(s, send_email, [send_email.args(1)])
    # wrong: Cannot infer value of type parameter "P" of "enqueue_many" || "list.Args..invoice_id.*"rows"
    jobq.enqueue_many(s, send_email, [render_invoice.args(1)])
    # wrong: Argument 3 to "enqueue_many" .* "Args.*; expected "Iterable.Args || "Args.*to parameter "rows"
    jobq.enqueue_many(s, send_email, send_email.args("a"))
    # wrong: List item 0 has incompatible type "str"; expected "Args || "list.str.".*parameter "rows"
    jobq.enqueue_many(s, send_email, ["a"])
    # wrong: List item 0 has incompatible type "tuple.*; expected "Args || "list.tuple.*parameter "rows"
    jobq.enqueue_many(s, send_email, [("a", "b")])
    # wrong: Dict entry 0 has incompatible type "int": "str"; expected "str" || "list.dict.int.*parameter "rows"
    jobq.enqueue_many(s, send_email, [{1: "a"}])
    # wrong: Unexpected keyword argument "to" for "enqueue_many" || Expected 1 more positional argument
    jobq.enqueue_many(s, send_email, to="a")
    # wrong: "Enqueued" has no attribute "job" || attribute "job" for class "Enqueued"
    print(jobq.enqueue_many(s, send_email, [{"to": "a"}])[0].job)


async def selected(s: Session, a: AsyncSession, rows: sa.Select[tuple[str]]) -> None:
    # wrong: Argument 1 to "enqueue_select" .* "AsyncSession" || "AsyncSession" .* "session" of type "Bind"
    jobq.enqueue_select(a, send_email, rows)
    # wrong: Argument 1 to "enqueue_select_async" .* "Session" || "Session" .* "session" of type "AsyncBind"
    await jobq.enqueue_select_async(s, send_email, rows)
    # wrong: "Coroutine.*must be used || async function call is not used; use "await"
    jobq.enqueue_select_async(a, send_email, rows)
    # wrong: Argument 2 to "enqueue_select" .* "str"; expected "Kind || email.send.*parameter "handler" of type "Kind
    jobq.enqueue_select(s, "email.send", rows)
    # wrong: Argument 3 to "enqueue_select" .* "str"; expected "SelectBase" || Literal.*parameter "select"
    jobq.enqueue_select(s, send_email, "SELECT email FROM users")
    # wrong: "tuple.Literal.'delay'...; expected "Iterable.Literal.'run_at' || delay.*parameter "options_from"
    jobq.enqueue_select(s, send_email, rows, options_from=("delay",))
    # wrong: "options_from" .* "str"; expected "Iterable.Literal.'run_at' || run_at.*parameter "options_from"
    jobq.enqueue_select(s, send_email, rows, options_from="run_at")
    # wrong: Too few arguments for "pk" || Expected 1 more positional argument
    jobq.pk()


def answers(s: Session) -> int:
    # wrong: Property "id" defined in "Enqueued" is read-only || assign to attribute "id" for class "Enqueued"
    jobq.enqueue(s, send_email, "a").id = 1
    # wrong: return value type .got "Enqueued", expected "int" || "Enqueued" is not assignable to return type "int"
    return jobq.enqueue(s, send_email, "a")
