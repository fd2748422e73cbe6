"""Which executors a worker has, and their start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jobq.errors import WorkerError
from jobq.executors import CoroutineExecutor, Executor, Setup, Starts, ThreadExecutor
from jobq.executors.finding import known_executors, make_executor, options_from_environment
from jobq.executors.limits import ThreadLimits
from jobq.handlers import Handler
from jobq.registry import App
from jobq.source import Source
from jobq.worker.options import WorkerOptions

OPTIONS = {
    "process": ("processes", "max_jobs_per_child", "max_memory_per_child"),
    "dask": ("dask_scheduler", "processes"),
}


def executors_for(
    app: App, source: Source, options: WorkerOptions, own: Mapping[str, Executor], *, name: str, app_path: str | None
) -> dict[str, Executor]:
    """Those of handlers in the worker's own process, those given by their names, and others that handlers ask for.

    Raises: WorkerError, OptionError.
    """
    threads = ThreadExecutor(ThreadLimits(options.threads, app.queues))
    executors: dict[str, Executor] = {"async": CoroutineExecutor(), "thread": threads, **own}
    for wanted in sorted({handler.executor for handler in app.handlers.values()} - executors.keys()):
        setup = Setup(
            name=wanted,
            app=app,
            worker=name,
            concurrency=options.concurrency,
            source=source,
            app_path=app_path,
            options=_options_of(wanted, options),
        )
        if (executor := make_executor(setup)) is None:
            known = ", ".join(sorted({*executors, *known_executors()}))
            raise WorkerError(
                f"no executor named {wanted} (known: {known}): install the package that brings it, or give the worker"
                f" one with executors={{{wanted!r}: ...}}"
            )
        executors[wanted] = executor
    _refuse_resources(app.handlers.values(), executors)
    return executors


async def start_executors(executors: Mapping[str, Executor]) -> None:
    """Raises: WorkerError."""
    for executor in executors.values():
        if isinstance(executor, Starts):
            await executor.start()


def idle_options(options: WorkerOptions, executors: Iterable[str]) -> dict[str, list[str]]:
    """Options that were given and count for none of these executors, each with those it would count for."""
    names = {name for names in OPTIONS.values() for name in names if getattr(options, name) is not None}
    names -= {name for executor in executors for name in OPTIONS.get(executor, ())}
    return {name: [each for each in OPTIONS if name in OPTIONS[each]] for name in sorted(names)}


def _options_of(executor: str, options: WorkerOptions) -> dict[str, Any]:
    """What the worker was told of an executor; of one that is not jobq's own, by the environment."""
    if executor not in OPTIONS:
        return dict(options_from_environment(executor))
    return {name.removeprefix(f"{executor}_"): getattr(options, name) for name in OPTIONS[executor]}


def _refuse_resources(handlers: Iterable[Handler[..., Any]], executors: Mapping[str, Executor]) -> None:
    """Raises: WorkerError, for a handler whose resources nobody would look at."""
    for handler in handlers:
        if handler.settings.resources and not getattr(executors[handler.executor], "takes_resources", False):
            raise WorkerError(
                f"handler {handler.kind!r} asks for resources, which its executor {handler.executor!r} does not take"
                " (one that does has takes_resources = True)"
            )
