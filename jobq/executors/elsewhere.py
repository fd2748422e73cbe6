"""Running a job's function in another process: an order goes there as a text, and its answer comes back as one.

What any executor needs whose functions run elsewhere. JSON crosses, never a pickle: there the function is found in the
registry by its kind, and the args are decoded there.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from typing import TypeAlias

from jobq.context import Context, Transaction, view_of
from jobq.errors import ArgsError, ContextError, UnknownKindError, WorkerError
from jobq.executors.base import Attempt, Call
from jobq.executors.coroutine import CoroutineExecutor
from jobq.executors.process.crossing import end_from_wire, end_to_wire, job_from_wire, job_to_wire
from jobq.executors.process.place import Place, application_at, where
from jobq.executors.sessions import watch_sessions
from jobq.executors.thread import run_here
from jobq.model import Claimed
from jobq.registry import App
from jobq.reports import Report, ignore
from jobq.verdict import Ended

Cancel: TypeAlias = Callable[[], None]
_making_loop = threading.Lock()


def order_of(attempt: Attempt, place: Place) -> str:
    """An attempt as a text for `perform`: which job, with its args as they are, and where its application is."""
    where_app = {"module": place.module, "attribute": place.attribute, "others": place.others}
    return json.dumps({"place": where_app, "job": job_to_wire(attempt.job)})


def perform(order: str, *, on_begin: Callable[[Cancel], None] = lambda _: None, on_report: Report = ignore) -> str:
    """Run the job of an order to its end, in the thread that this is called in. The answer is for `end_of`.

    The application is imported by the first order of a process. Plain functions run in this thread, async ones in one
    event loop that the process has for them. `on_begin` is called once the args fit, directly before the function, with
    what tells that to stop: `current().cancelled` turns true, an async function is cancelled; to be called from any
    thread. What `on_begin` raises comes out of here, and the function does not run. `on_report` is called with what the
    function reports, `progress` say, and its text, for `Attempt.report`.
    """
    message = json.loads(order)
    place = Place(message["place"]["module"], message["place"]["attribute"], tuple(message["place"]["others"]))
    return json.dumps(end_to_wire(_perform(place, job_from_wire(message["job"]), on_begin, on_report)))


def end_of(answer: str) -> Ended:
    """How it ended; an exception as one that policies can look at, whose class is never imported for it."""
    return end_from_wire(json.loads(answer))


def kinds_at(place: Place) -> list[str]:
    """The kinds that the application has handlers for, imported here. Raises: WorkerError."""
    return list(_application(place).handlers)


@cache
def _application(place: Place) -> App:
    watch_sessions()
    try:
        return application_at(place)
    except BaseException as error:
        text = f"{type(error).__name__}: {error} ({where(error)})"
        raise WorkerError(f"the application {place} cannot be imported where the job is to run: {text}") from None


def _perform(place: Place, job: Claimed, on_begin: Callable[[Cancel], None], on_report: Report) -> Ended:
    try:
        app = _application(place)
        handler = app.handlers.get(job.kind)
        if handler is None:
            return Ended(error=UnknownKindError(job.kind, frozenset(app.handlers)))
        arguments = handler.codec.decode(job.args)
    except (WorkerError, ArgsError) as error:
        return Ended(error=error)
    view = view_of(job, max_attempts=job.max_attempts or handler.settings.max_attempts)
    context = Context(view, None, _no_transaction, meta=job.meta, report=on_report)
    call = Call(handler.function, arguments, context, app.around_factories)
    if handler.is_async:
        return _run_in_loop(call, on_begin)
    on_begin(context.cancel)
    return contextvars.Context().run(run_here, call)


def _no_transaction() -> Transaction:
    raise ContextError(
        "no transaction here: the function runs away from its worker, which alone can complete the job; use a session"
        " of the application's own, and expect that the job may run again after its commit"
    )


def _run_in_loop(call: Call, on_begin: Callable[[Cancel], None]) -> Ended:
    """Returns when the task has ended, not when it was told to."""
    loop, ended, tasks = _loop(), Future[Ended](), list[asyncio.Task[Ended]]()

    def begin() -> None:
        task = loop.create_task(CoroutineExecutor().run(call), context=contextvars.Context())
        tasks.append(task)
        task.add_done_callback(lambda task: ended.set_result(_end_of_task(task)))

    def cancel() -> None:
        call.context.cancel()
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])

    on_begin(cancel)
    loop.call_soon_threadsafe(begin)
    return ended.result()


def _end_of_task(task: asyncio.Task[Ended]) -> Ended:
    return Ended(error=asyncio.CancelledError()) if task.cancelled() else task.result()


def _loop() -> asyncio.AbstractEventLoop:
    """One for the process: what async functions share, a connection pool say, belongs to one loop."""
    with _making_loop:
        return _only_loop()


@cache
def _only_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="jobq-async", daemon=True).start()
    return loop
