"""One attempt after the other, as the worker's own executors would run it."""

from __future__ import annotations

import asyncio
import contextvars
from functools import partial
from time import monotonic
from typing import Any

from jobq.child.parent import Parent
from jobq.child.reports import Reports
from jobq.child.transaction import ChildTransaction
from jobq.context import Context
from jobq.errors import ArgsError, UnknownKindError
from jobq.executors import Call, CoroutineExecutor
from jobq.executors.sessions import watch_sessions
from jobq.executors.thread import run_here
from jobq.model import Claimed
from jobq.queue_settings import QueueSettings
from jobq.registry import App
from jobq.verdict import Ended
from jobq.worker.handler_engines import HandlerEngines
from jobq.worker.held import Held, held_of

UNSAID = QueueSettings()


class Attempts:
    """Plain functions in the main thread, async ones in an event loop there that is kept from one to the next."""

    def __init__(self, app: App, parent: Parent, engines: HandlerEngines) -> None:
        watch_sessions()
        self._app = app
        self._parent = parent
        self._engines = engines
        self._reports = Reports(parent)
        self._runner = asyncio.Runner()
        self._context: Context | None = None
        self._task: asyncio.Task[Any] | None = None

    def run(self, job: Claimed) -> Ended:
        """How it ended; the worker is told once it begins."""
        handler = self._app.handlers.get(job.kind)
        if handler is None:
            return Ended(error=UnknownKindError(job.kind, frozenset(self._app.handlers)))
        held = held_of(job, handler, self._app.queues.get(job.queue, UNSAID), monotonic())
        try:
            call = self._call(held)
        except ArgsError as error:
            return Ended(error=error)
        self._context = call.context
        self._parent.tell({"is": "began"})
        try:
            return self._in_loop(call) if handler.is_async else contextvars.Context().run(run_here, call)
        finally:
            self._context = None
            self._reports.flush()

    def cancel(self, is_lost: bool) -> None:
        """Tell what runs to stop; called in another thread."""
        if self._context is not None:
            self._context.cancel()
            if is_lost:
                self._context.lose()
        if (task := self._task) is not None:
            task.get_loop().call_soon_threadsafe(task.cancel)

    def close(self) -> None:
        self._runner.run(self._engines.close())
        self._runner.close()

    def _call(self, held: Held) -> Call:
        """`state` is None: what a lifespan opens belongs to the worker's process and its event loop."""
        arguments = held.handler.codec.decode(held.job.args)
        transaction = partial(ChildTransaction, held, self._engines, self._parent)
        report = partial(self._reports.note, held.job)
        context = Context(held.view, None, transaction, meta=held.job.meta, report=report)
        held.context = context
        return Call(held.handler.function, arguments, context, self._app.around_factories)

    def _in_loop(self, call: Call) -> Ended:
        try:
            return self._runner.run(self._task_of(call), context=contextvars.Context())
        except BaseException as error:  # cancelled by the worker, or raised by a broken event loop policy
            return Ended(error=error)
        finally:
            self._task = None

    async def _task_of(self, call: Call) -> Ended:
        self._task = asyncio.current_task()
        return await CoroutineExecutor().run(call)
