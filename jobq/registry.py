"""Where handlers are registered: `App`, which a worker runs, and `Registry`, a module's part of it."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import timedelta
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from jobq import checks
from jobq.backoff import Exponential, NoRetryOn, RetryPolicy
from jobq.errors import OptionError, OptionTypeError, RegistrationError
from jobq.events import ErrorCallback
from jobq.handlers import Handler, P, R
from jobq.options import OnInterrupt, Priority, Settings, Unique
from jobq.pausing import PauseOn
from jobq.periodic import Periodic, place_of
from jobq.queue_settings import QueueSettings
from jobq.throttle import Throttle

Lifespan: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]
Around: TypeAlias = Callable[[], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]
L = TypeVar("L", bound="Callable[[], AsyncIterator[Any] | AbstractAsyncContextManager[Any]]")
A = TypeVar("A", bound=Around)
C = TypeVar("C", bound=ErrorCallback)


class Registry(Periodic):
    """A module's handlers, for an App to include. `queue`: where their jobs go unless they say otherwise."""

    def __init__(self, *, queue: str = "default") -> None:
        super().__init__()
        self._queue = checks.name("queue", queue)
        self._handlers: dict[str, Handler[..., Any]] = {}
        self._places: dict[str, str] = {}
        self._included_in: list[Registry] = []

    @property
    def handlers(self) -> Mapping[str, Handler[..., Any]]:
        """The handlers by their kinds."""
        return MappingProxyType(self._handlers)

    def handler(
        self,
        kind: str,
        /,
        *,
        queue: str | None = None,
        priority: Priority = 1,
        max_attempts: int = 5,
        timeout: timedelta | None = None,
        retry: RetryPolicy = Exponential(),  # noqa: B008  # frozen
        no_retry_on: NoRetryOn = (),
        unique: Unique = False,
        executor: str = "auto",
        resources: Mapping[str, float] | None = None,
        on_interrupt: OnInterrupt = "retry",
        keep: timedelta | None = None,
    ) -> Callable[[Callable[P, R]], Handler[P, R]]:
        """Register the decorated function for a kind: written out, so that renaming the function changes nothing.

        The function's signature is the schema of the args. `max_attempts`, 1 to 32767: so many failures and the job is
        dead. `retry`: `(failures, error) -> delay`, None for dead at once; `no_retry_on`: exceptions that end the job
        as dead at once, as TimeoutError does that stands in it when the job outlives its `timeout`. `executor` "auto":
        async functions in the loop, others in threads. `resources`, such as {"GPU": 1}: what it takes of where it runs,
        for "dask" and own executors that know of it. `on_interrupt` "fail": dead when its worker dies, rather than run
        again. `keep`: for how long the ended job is kept. The rest are the defaults of `options`.

        Raises: RegistrationError, OptionError, OptionTypeError.
        """
        if callable(kind):
            raise OptionTypeError('kind: write it out, @app.handler("email.send") and not @app.handler')
        checks.name("kind", kind)
        settings = Settings(
            queue=self._queue if queue is None else queue,
            priority=priority,
            max_attempts=max_attempts,
            timeout=timeout,
            retry=retry,
            no_retry_on=no_retry_on,
            unique=unique,
            executor=executor,
            resources=resources,
            on_interrupt=on_interrupt,
            keep=keep,
        )

        def register(function: Callable[P, R]) -> Handler[P, R]:
            caller = sys._getframe(1)
            handler = Handler(kind, function, settings, localns=caller.f_locals)
            self._add(handler, place_of(caller))
            return handler

        return register

    def _add(self, handler: Handler[..., Any], place: str) -> None:
        holders = [self, *self._included_in]
        for holder in holders:
            holder._refuse_taken(handler, place)
        for holder in holders:
            holder._handlers[handler.kind] = handler
            holder._places[handler.kind] = place

    def _refuse_taken(self, handler: Handler[..., Any], place: str) -> None:
        if self._handlers.get(handler.kind, handler) is not handler:
            taken = self._places[handler.kind]
            raise RegistrationError(f"kind {handler.kind!r} is registered twice: {_both(taken, place)}")


class App(Registry):
    """All that a worker needs to know of an application: handlers, queues, and what is around each job."""

    def __init__(self, *, queue: str = "default") -> None:
        super().__init__(queue=queue)
        self._queues: dict[str, QueueSettings] = {}
        self._around: list[Around] = []
        self._lifespan: Lifespan | None = None
        self._on_error: list[ErrorCallback] = []

    @property
    def queues(self) -> Mapping[str, QueueSettings]:
        """The queues that code says something of, by their names."""
        return MappingProxyType(self._queues)

    @property
    def around_factories(self) -> tuple[Around, ...]:
        """In the order of entering."""
        return tuple(self._around)

    @property
    def lifespan_function(self) -> Lifespan | None:
        """Called once a worker; an async generator function has become a context manager's."""
        return self._lifespan

    @property
    def error_callbacks(self) -> tuple[ErrorCallback, ...]:
        """In the order of registration."""
        return tuple(self._on_error)

    def include(self, registry: Registry) -> None:
        """Take over the handlers and schedules of a registry, also those that it gets later.

        Raises: RegistrationError, when a kind or a schedule's name is taken or a type in a signature cannot be found.
        """
        if not isinstance(registry, Registry) or isinstance(registry, App):
            raise OptionTypeError(f"include: expected a jobq.Registry, got {type(registry).__name__}")
        for kind, handler in registry.handlers.items():
            handler.resolve()
            self._refuse_taken(handler, registry._places[kind])
        self._refuse_schedules(registry)
        self._take_schedules(registry)
        self._handlers.update(registry._handlers)
        self._places.update(registry._places)
        if self not in registry._included_in:
            registry._included_in.append(self)

    def queue(
        self,
        name: str,
        /,
        *,
        weight: int = 1,
        fifo: bool = False,
        concurrency: int | None = None,
        threads: int | None = None,
        throttle: Throttle | None = None,
        timeout: timedelta | None = None,
        pause_on: PauseOn | None = None,
    ) -> None:
        """Say something of a queue. Weight and limit are defaults: what is set in the database overrules them.

        `weight`, 1 to 1000: its share of the claims while other queues have work too. `fifo`: one job at a time in the
        whole fleet, by (priority, run_at, id), and a job that is retried keeps its place. `concurrency`, 1 to 1000: so
        many jobs at a time in the whole fleet, in no strict order. `throttle`, for one of these two: how long the queue
        waits after a job (`per_minute`). `threads`: so many of its jobs in threads at a time in each worker's process;
        while they are taken, that worker claims nothing from this queue. `timeout`: of handlers that have none of their
        own. `pause_on`: the errors that let the queue stand still instead of failing the job (`http_status`).

        Raises: OptionError, OptionTypeError.
        """
        settings = QueueSettings(
            weight=weight,
            fifo=fifo,
            concurrency=concurrency,
            threads=threads,
            throttle=throttle,
            timeout=timeout,
            pause_on=pause_on,
        )
        earlier = self._queues.setdefault(checks.name("queue", name), settings)
        if difference := earlier.differs_from(settings):
            raise OptionError(f"queue {name!r} is declared twice: {difference}")

    def around(self, factory: A, /, *, outermost: bool = False) -> A:
        """Enter the context manager that `factory()` gives around each job (Flask's `app.app_context`).

        An async one can be entered for async handlers only. `outermost`: before those that are there already.
        """
        _needs_callable("around", factory)
        self._around.insert(0 if outermost else len(self._around), factory)
        return factory

    def lifespan(self, function: L, /) -> L:
        """Enter an async context manager for as long as a worker runs; what it yields is `current().state`."""
        _needs_callable("lifespan", function)
        if self._lifespan is not None:
            raise RegistrationError("lifespan: this app has one already; enter several in one with an AsyncExitStack")
        opened: Any = contextlib.asynccontextmanager(function) if inspect.isasyncgenfunction(function) else function
        self._lifespan = opened
        return function

    def on_error(self, callback: C, /) -> C:
        """Call back with an ErrorEvent for each failed attempt, and for each run of failures of the worker itself."""
        _needs_callable("on_error", callback)
        self._on_error.append(callback)
        return callback

    def resolve(self) -> None:
        """Find the types that signatures name. Raises: RegistrationError, for the first that cannot be found."""
        for handler in self._handlers.values():
            handler.resolve()


def _needs_callable(option: str, value: object) -> None:
    if not callable(value):
        raise OptionTypeError(f"{option}: expected a callable, got {checks.show(value)}")


def _both(taken: str, place: str) -> str:
    if taken != place:
        return f"at {taken} and at {place}"
    return (
        f"{place} was executed twice, as it happens to a module that is run as a script (`__main__`) and imported by"
        " its name as well, or under two names: keep handlers in modules that are only imported, under one name"
    )
