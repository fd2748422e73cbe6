"""Which executors a worker has, and their start."""

from __future__ import annotations

from collections.abc import Mapping

from jobq.errors import OptionError, WorkerError
from jobq.executors import CoroutineExecutor, Executor, Starts, ThreadExecutor
from jobq.executors.process import ProcessExecutor, ProcessOptions
from jobq.executors.process.memory import CAN_BE_WATCHED
from jobq.registry import App
from jobq.source import Source
from jobq.worker.options import WorkerOptions


def executors_for(
    app: App, source: Source, options: WorkerOptions, own: Mapping[str, Executor], *, name: str, app_path: str | None
) -> dict[str, Executor]:
    """The built-in ones, and those of the application by their names. Raises: WorkerError, OptionError."""
    wanted = {handler.executor for handler in app.handlers.values()}
    executors: dict[str, Executor] = {"async": CoroutineExecutor(), "thread": ThreadExecutor(), **own}
    if "process" in wanted and "process" not in own:
        limits = _limits(options)
        executors["process"] = ProcessExecutor(app, source, limits, name=name, app_path=app_path)
    if missing := wanted - executors.keys():
        known = ", ".join(sorted({*executors, "process"}))
        raise WorkerError(f"no executor named {', '.join(sorted(missing))} (known: {known})")
    return executors


async def start_executors(executors: Mapping[str, Executor]) -> None:
    """Raises: WorkerError."""
    for executor in executors.values():
        if isinstance(executor, Starts):
            await executor.start()


def _limits(options: WorkerOptions) -> ProcessOptions:
    if options.max_memory_per_child is not None and not CAN_BE_WATCHED:
        raise OptionError("max_memory_per_child: only Linux tells how much memory another process uses")
    return ProcessOptions(options.processes, options.max_jobs_per_child, options.max_memory_per_child)
