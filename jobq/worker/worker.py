"""The worker: starts its services, claims until it is stopped, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import sqlalchemy as sa
from anyio.abc import TaskStatus

from jobq.diagnosis import Health, WorkerFacts, readiness
from jobq.errors import WorkerError
from jobq.events import EndCallback, EndsCallback
from jobq.executors import Executor
from jobq.registry import App
from jobq.source import source_of
from jobq.worker.assembly import Assembly, Setting
from jobq.worker.loopguard import guard
from jobq.worker.membership import default_name
from jobq.worker.options import WorkerOptions, specs
from jobq.worker.placing import executors_for, idle_options
from jobq.worker.shutdown import CLOSE_SECONDS, claim_until_told, close, drain, leave, stop_handlers
from jobq.worker.startup import start
from jobq.worker.stats import WorkerStats, facts_of, snapshot

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

logger = logging.getLogger("jobq.worker")
E = TypeVar("E", bound=EndCallback)
M = TypeVar("M", bound=EndsCallback)
EXIT_NOT_GIVEN_BACK = 1
EXIT_LEFT_BEHIND = 70


class Worker:
    """Claims due jobs of the kinds that `app` has handlers for, and runs them.

    `engine` is where the jobs are: a URL, an Engine or an AsyncEngine (whose URL, connect arguments, `do_connect`
    listeners, creator and schema_translate_map are taken; the pools are the worker's own, through psycopg, READ
    COMMITTED). A worker uses up to 6 connections, and one more for each handler that is inside of
    `current().transaction()`. `pooler`: the URL is that of a pooler in transaction mode, such as PgBouncer; then
    nothing can be listened for there, but at `listen_url`, the server's own.

    Options: see WorkerOptions. `app_path`, `module:attribute`: where child processes import the App, when it cannot be
    found among the loaded modules. `executors` adds executors by the name that handlers ask for, or replaces built-in
    ones.

    Raises: OptionError, OptionTypeError, RegistrationError (an annotation of a handler does not resolve), WorkerError.
    """

    def __init__(
        self,
        app: App,
        engine: sa.Engine | AsyncEngine | sa.URL | str,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int = 20,
        lease: timedelta = timedelta(seconds=60),
        grace: timedelta = timedelta(seconds=30),
        poll_interval: timedelta = timedelta(seconds=1),
        stall: timedelta | None = None,
        name: str | None = None,
        listen: bool = True,
        pooler: bool = False,
        listen_url: sa.URL | str | None = None,
        executors: Mapping[str, Executor] | None = None,
        processes: int | None = None,
        max_jobs_per_child: int | None = None,
        max_memory_per_child: int | None = None,
        threads: int | None = None,
        max_left_behind: int | None = None,
        dask_scheduler: str | None = None,
        app_path: str | None = None,
    ) -> None:
        given = {each: value for each, value in locals().items() if each in specs(WorkerOptions)}  # all of the above
        self._setting = _setting(app, engine, WorkerOptions(**given), executors or {}, app_path)
        self._is_told_to_stop = False
        self._assembly: Assembly | None = None
        self._last: WorkerStats | None = None
        self._on_ends: list[EndsCallback] = []

    @property
    def name(self) -> str:
        return self._setting.name

    @property
    def stall(self) -> timedelta:
        """How long the event loop may stand still before the process is ended."""
        return self._setting.options.stall_after

    def stop(self, *, now: bool = False) -> None:
        """Stop claiming, let what runs end within the grace time, then give back the rest; `now`: without the grace.

        May be called again, with `now`, to hurry. To be called in the event loop's thread.
        """
        self._is_told_to_stop = True
        if self._assembly is not None:
            self._assembly.end()
            if now:
                self._assembly.stop.hurry.set()

    def stats(self) -> WorkerStats:
        """What this worker has done and is doing. Raises: WorkerError, before the first `run`."""
        if self._assembly is not None:
            return snapshot(self._assembly, self.name)
        if self._last is None:
            raise WorkerError("the worker has not run yet: stats() works once run() has begun")
        return self._last

    def health(self) -> Health:
        """Whether this worker takes jobs: it runs, is not stopping, holds its lease, and its claims come through.

        May be called from any thread, at any time.
        """
        assembly, options = self._assembly, self._setting.options
        if assembly is None:
            return readiness(WorkerFacts())
        is_stopping = self._is_told_to_stop or assembly.stop.told_at is not None
        facts = facts_of(assembly, is_told_to_stop=is_stopping, poll_interval=options.poll_interval)
        return readiness(facts)

    @property
    def is_ready(self) -> bool:
        """Whether `health` finds nothing wrong."""
        return self.health().is_ok

    def on_end(self, callback: E, /) -> E:
        """Call back with a JobEnd for each end of an attempt that is recorded, in the event loop's thread.

        For counting: it must be quick and must not block. What it raises is logged.
        """
        self._on_ends.append(lambda ends: ends.tell_each(callback))
        return callback

    def on_ends(self, callback: M, /) -> M:
        """As `on_end`, with a JobEnds for those that were recorded together: for what counts very many."""
        self._on_ends.append(callback)
        return callback

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> int:
        """Work until `stop`. Returns the exit code for a process that does nothing else: 0 when everything was recorded
        or given back, 1 when it was not (the lease of those jobs runs out), 70 when a handler could not be stopped and
        still runs (such a process has to end with os._exit, the interpreter would wait for it), or when the worker has
        stopped by itself since too many could not be (`max_left_behind`).

        With a task group's `start` it returns once the worker is registered. A database that is out of reach is waited
        for. Raises: SchemaError, WorkerError (refused, or running already), and whatever a service cannot wait out.
        """
        if self._assembly is not None:
            raise WorkerError("this worker is running already: make another one")
        assembly = self._assembly = Assembly(self._setting)
        assembly.completer.on_ends(self._on_ends)
        guard(asyncio.get_running_loop())
        if self._is_told_to_stop:
            self.stop()
        try:
            async with self._lifespan(assembly):
                await self._serve(assembly, task_status)
        finally:
            self._last, self._assembly = snapshot(assembly, self.name), None
            await close(assembly, self._setting)
        if self._last.left_behind or assembly.wear.is_out:
            return EXIT_LEFT_BEHIND
        return EXIT_NOT_GIVEN_BACK if self._last.not_given_back else 0

    @asynccontextmanager
    async def _lifespan(self, assembly: Assembly) -> AsyncIterator[None]:
        """What the application opens for its handlers, open for as long as they run."""
        if self._setting.app.lifespan_function is None:
            yield
            return
        async with self._setting.app.lifespan_function() as state:
            assembly.runner.begin_with(state)
            yield

    async def _serve(self, assembly: Assembly, task_status: TaskStatus[None]) -> None:
        if not await start(assembly, self._setting):
            task_status.started()
            return
        logger.info("worker %s is at work as %s", self.name, assembly.lease.worker_id)
        _say_polling(self._setting.options)
        _say_idle(self._setting)
        try:
            async with anyio.create_task_group() as recording:
                await recording.start(assembly.completer.run)
                async with anyio.create_task_group() as background:
                    for service in _services(assembly, self._setting.options):
                        await background.start(service.run)
                    assembly.heartbeat.start()
                    assembly.loop_watch.start()
                    task_status.started()
                    await claim_until_told(assembly)
                    await drain(assembly, self._setting.options.grace)
                    background.cancel_scope.deadline = anyio.current_time() + CLOSE_SECONDS
                recording.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise _only(group) from None
        finally:
            with anyio.CancelScope(shield=True):
                await stop_handlers(assembly)  # nothing runs any more, unless a service has failed
                await leave(assembly)


def _setting(
    app: App,
    engine: sa.Engine | AsyncEngine | sa.URL | str,
    options: WorkerOptions,
    executors: Mapping[str, Executor],
    app_path: str | None,
) -> Setting:
    app.resolve()
    name = options.name or default_name()
    source = source_of(engine, pooler=options.pooler)
    listen_source = source if options.listen_url is None else source_of(options.listen_url)
    made = executors_for(app, source, options, executors, name=name, app_path=app_path)
    return Setting(app, source, listen_source, options, name, made)


def _say_polling(options: WorkerOptions) -> None:
    if options.listen and not options.listens:
        seconds = options.poll_interval.total_seconds()
        logger.info(
            "behind a pooler nothing can be listened for: new jobs are found by looking every %g s, or told of at once"
            " with --listen-url (in Python: listen_url=...), the server's own URL",
            seconds,
        )


def _say_idle(setting: Setting) -> None:
    for name, executors in idle_options(setting.options, setting.executors).items():
        wanted = " or ".join(f'executor="{executor}"' for executor in executors)
        logger.info("%s has no use here: no handler has %s", name, wanted)


def _services(assembly: Assembly, options: WorkerOptions) -> list[Any]:
    listener = [assembly.listener] if options.listens else []
    return [
        assembly.surveyor,
        assembly.rescuer,
        assembly.election,
        assembly.maintainer,
        assembly.scheduler,
        assembly.guard,
        assembly.keeper,
        assembly.losses,
        assembly.reporter,
        assembly.awaited,
        assembly.session_watch,
        *listener,
    ]


def _only(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one exception that a service ended the worker with, or the group of several."""
    return _only_of(group.exceptions[0]) if len(group.exceptions) == 1 else group


def _only_of(error: BaseException) -> BaseException:
    return _only(error) if isinstance(error, BaseExceptionGroup) else error
