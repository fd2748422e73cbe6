"""Wrong options of an enqueue, of a handler and of an application. As in wrong.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

from right import app, billing, send_email
from sqlalchemy.orm import Session

import jobq


def of_an_enqueue(s: Session) -> None:
    # wrong: Unexpected keyword argument "dely" for "options" || No parameter named "dely"
    send_email.options(dely=timedelta(1))
    # wrong: Too many positional arguments for "options" || Expected 0 positional arguments
    send_email.options("slow")
    # wrong: "queue" to "options" of "Kind" has incompatible type "int" || Literal.1.*parameter "queue" of type "str
    send_email.options(queue=1)
    # wrong: "priority" to "options" .* "Literal.7."; expected "Literal.0, 1, 2, 3 || Literal.7.*parameter "priority"
    send_email.options(priority=7)
    # wrong: "delay" to "options" .* "int"; expected "timedelta || Literal.5.*parameter "delay" of type "timedelta
    send_email.options(delay=5)
    # wrong: "run_at" to "options" .* "str"; expected "datetime || tomorrow.*parameter "run_at" of type "datetime
    send_email.options(run_at="tomorrow")
    # wrong: "max_attempts" to "options" .* "str"; expected "int || Literal.*parameter "max_attempts" of type "int
    send_email.options(max_attempts="8")
    # wrong: "timeout" to "options" .* "int"; expected "timedelta || Literal.30.*parameter "timeout" of type "timedelta
    send_email.options(timeout=30)
    # wrong: "unique_key" to "options" .* "int"; expected "str || Literal.1.*parameter "unique_key" of type "str
    send_email.options(unique_key=1)
    # wrong: "unique" to "options" .* "str"; expected "bool . tuple || Literal.*parameter "unique" of type "Unique
    send_email.options(unique="to")
    # wrong: "unique" to "options" .* "list.str."; expected "bool . tuple || "list.*parameter "unique" of type "Unique
    send_email.options(unique=["to"])
    # wrong: "on_conflict" .* "Literal.'replac'."; expected "Literal.'ignore' || replac.*parameter "on_conflict"
    send_email.options(on_conflict="replac")
    # wrong: "max_wait" to "options" .* "int"; expected "timedelta || Literal.60.*"max_wait" of type "timedelta
    send_email.options(max_wait=60)
    # wrong: "keep" to "options" .* "int"; expected "timedelta || Literal.7.*parameter "keep" of type "timedelta
    send_email.options(keep=7)
    # wrong: "to" to "enqueue" has incompatible type "int" || Literal.1.*parameter "to" of type "str"
    jobq.enqueue(s, send_email.options(priority=0), to=1)
    # wrong: Unexpected keyword argument "dely" for "options" || No parameter named "dely"
    jobq.enqueue(s, jobq.kind("x", queue="y").options(dely=5), any=1)


# wrong: Argument 1 to "handler" .* "Callable.*; expected "str" || parameter "kind" of type "str" in function "handler"
@app.handler
def without_parentheses() -> None: ...


# wrong: Too few arguments for "handler" || Expected 1 more positional argument
@app.handler()
def without_a_kind() -> None: ...


# wrong: Unexpected keyword argument "delay" for "handler" || No parameter named "delay"
@app.handler("a", delay=timedelta(1))
def an_option_of_enqueue() -> None: ...


# wrong: "priority" to "handler" .* "Literal.9."; expected "Literal.0, 1, 2, 3 || Literal.9.*parameter "priority"
@app.handler("b", priority=9)
def too_low() -> None: ...


# wrong: "timeout" to "handler" .* "int"; expected "timedelta || Literal.30.*parameter "timeout" of type "timedelta
@app.handler("c", timeout=30)
def in_seconds() -> None: ...


# wrong: "max_attempts" to "handler" .* "str"; expected "int" || Literal.*parameter "max_attempts" of type "int"
@billing.handler("d", max_attempts="5")
def attempts_as_text() -> None: ...


# wrong: "retry" to "handler" .* "int"; expected "Callable || Literal.3.*parameter "retry" of type "RetryPolicy"
@app.handler("e", retry=3)
def retried_three_times() -> None: ...


# wrong: "retry" to "handler" .* "type.Exponential || "type.Exponential.*parameter "retry" of type "RetryPolicy"
@app.handler("f", retry=jobq.Exponential)
def the_class_of_a_policy() -> None: ...


# wrong: "no_retry_on" .* "type.ValueError."; expected "tuple || "type.ValueError.*"no_retry_on" of type "NoRetryOn"
@app.handler("i", no_retry_on=ValueError)
def one_exception() -> None: ...


# wrong: "no_retry_on" .* "tuple.type.int..*; expected "tuple.type.BaseExc || "type.int." is not assign.*BaseException
@app.handler("j", no_retry_on=(int,))
def no_exception() -> None: ...


# wrong: "on_interrupt" .* "Literal.'die'."; expected "Literal.'retry', 'fail' || die.*parameter "on_interrupt"
@app.handler("g", on_interrupt="die")
def dies() -> None: ...


# wrong: "unique" to "handler" .* "str"; expected "bool . tuple || Literal.*parameter "unique" of type "Unique"
@app.handler("h", unique="to")
def unique_by_text(to: str) -> None: ...


# wrong: Dict entry 0 has incompatible type "str": "str"; expected "str": "float" || "dict.str, str.".*"resources"
@app.handler("k", executor="dask", resources={"GPU": "1"})
def with_a_gpu() -> None: ...


def of_an_application() -> None:
    # wrong: "base" to "Exponential" .* "int"; expected "timedelta" || Literal.2.*parameter "base" of type "timedelta"
    jobq.Exponential(base=2)
    # wrong: Dict entry 0 has incompatible type "type.int.": || "type.int." is not assignable to "type.BaseException
    jobq.ByError({int: jobq.Exponential()})
    # wrong: Too many positional arguments for "Registry" || Expected 0 positional arguments
    jobq.Registry("billing")
    # wrong: Argument 1 to "include" of "App" has incompatible type "Handler || "Handler.*parameter "registry"
    app.include(send_email)
    # wrong: Unexpected keyword argument "wieght" for "queue" of "App" || No parameter named "wieght"
    app.queue("email", wieght=3)
    # wrong: "weight" to "queue" of "App" has incompatible type "str" || Literal.*parameter "weight" of type "int"
    app.queue("email", weight="3")
    # wrong: "Registry" has no attribute "lifespan" || attribute "lifespan" for class "Registry"
    print(billing.lifespan)
    # wrong: Unsupported target for indexed assignment ."Mapping || "__setitem__" method not defined on type "Mapping
    app.handlers["email.send"] = send_email


# wrong: "L" of "lifespan" .* cannot be "Callable.*Iterator.int || "Iterator.int." is incompatible with.*"AsyncIterator
@app.lifespan
def plain_generator() -> Iterator[int]:
    yield 1


# wrong: "L" of "lifespan" .* cannot be "Callable..object., AsyncIterator || "lifespan".*Extra parameter "app"
@app.lifespan
async def with_a_parameter(app: object) -> AsyncIterator[int]:
    yield 1


# wrong: "L" of "lifespan" .* cannot be "Callable.*Coroutine || return type "CoroutineType.*incompatible.*"AsyncIterator
@app.lifespan
async def returning() -> dict[str, int]:
    return {}


# wrong: "A" of "around" .* cannot be "Callable.*Iterator || "Iterator.None." is incompatible with.*ContextManager
@app.around
def without_contextmanager() -> Iterator[None]:
    yield


# wrong: "C" of "on_error" .* cannot be "Callable..str., None || type "ErrorEvent" is incompatible with type "str"
@app.on_error
def told_in_text(event: str) -> None: ...


# wrong: "C" of "on_error" .* cannot be "Callable..ErrorEvent, Exception || "callback".*Extra parameter "error"
@app.on_error
def told_twice(event: jobq.ErrorEvent, error: Exception) -> None: ...


@app.on_error
def of_an_event(event: jobq.ErrorEvent) -> None:
    # wrong: "ErrorEvent" has no attribute "attempts" || attribute "attempts" for class "ErrorEvent"
    print(event.attempts)
    # wrong: Item "None" of "CurrentJob . None" has no attribute "id" || "id" is not a known attribute of "None"
    print(event.job.id)
