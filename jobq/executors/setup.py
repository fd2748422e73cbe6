"""What the factory of an executor is given, and what it has to give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from jobq.executors.base import Executor
from jobq.executors.process.place import Place, place_of
from jobq.handlers import Handler
from jobq.registry import App
from jobq.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The worker that an executor is made for.

    name: the executor's own, by which handlers ask for it. worker: what people call the worker. app_path: where the App
    can be imported, `module:attribute`, if that was told. options: what the worker was told of this executor; of one
    that is not jobq's own, the variables JOBQ_<NAME>_..., by the rest of their names in lower case: of an executor
    "ray" JOBQ_RAY_ADDRESS is `options["address"]`. source: where the worker's connections come from.
    """

    name: str
    app: App
    worker: str
    concurrency: int
    source: Source
    app_path: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def handlers(self) -> dict[str, Handler[..., Any]]:
        """The handlers that ask for this executor, by their kinds."""
        return {kind: handler for kind, handler in self.app.handlers.items() if handler.executor == self.name}

    def place(self) -> Place:
        """Where another process imports the App. Raises: WorkerError, when it could not."""
        return place_of(self.app, self.app_path, self.name)


Factory: TypeAlias = Callable[[Setup], Executor]
