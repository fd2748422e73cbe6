"""What can be enqueued: a kind, with its function (Handler) or by its name alone (`jobq.kind`)."""

from __future__ import annotations

import copy
import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Generic, ParamSpec, Self, TypeVar

from jobq import checks
from jobq.codec import Codec, encode_untyped, is_async
from jobq.errors import OptionError, OptionTypeError, RegistrationError
from jobq.options import OnConflict, Options, Priority, Settings, Unique
from jobq.outcomes import Outcome

P = ParamSpec("P")
R = TypeVar("R", bound="Outcome | str | Awaitable[Outcome | str | None] | None")
R_co = TypeVar("R_co", covariant=True)


class Kind(Generic[P]):
    """A kind of job, and how its next jobs are enqueued. A Handler is a Kind with its function.

    Never changed: `options` gives a copy.
    """

    def __init__(self, kind: str, base: Options) -> None:
        self.kind = checks.name("kind", kind)
        self._base = base
        self._chosen = Options()
        self._effective = base

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.kind}>"

    def options(
        self,
        *,
        queue: str | None = None,
        priority: Priority | None = None,
        run_at: datetime | None = None,
        delay: timedelta | None = None,
        max_attempts: int | None = None,
        timeout: timedelta | None = None,
        unique_key: str | None = None,
        unique: Unique | None = None,
        on_conflict: OnConflict | None = None,
        max_wait: timedelta | None = None,
        keep: timedelta | None = None,
    ) -> Self:
        """A copy whose jobs are enqueued so; what is left out stays as it was.

        `run_at` is aware and not before now, `delay` counts by the database's clock. `unique_key` (1 to 200 bytes) is
        global over kinds and queues, and held while its job is pending or running; `unique` derives it from the kind
        and all args (True), or those named in a tuple. What an enqueue does when the key is held, `on_conflict`:

        - "ignore", the default: nothing, the answer is the holder's id with `created` False;
        - "replace": a waiting holder becomes what this call would have inserted; its time only where one is given;
        - "reschedule": a waiting holder of that kind gets this call's time, and no later one than its `created_at` plus
          `max_wait`; one that was tried before is not moved to before its retry;
        - "raise": UniqueKeyError, which names the holder.

        A running holder is never changed: `created` and `changed` are False then, and what this call says is not kept.
        A changed row is locked until the caller commits; workers pass it over meanwhile.

        Raises: OptionError, OptionTypeError.
        """
        chosen = Options(
            queue=queue,
            priority=priority,
            run_at=run_at,
            delay=delay,
            max_attempts=max_attempts,
            timeout=timeout,
            unique_key=unique_key,
            unique=unique,
            on_conflict=on_conflict,
            max_wait=max_wait,
            keep=keep,
        )
        self._check_names(chosen.unique)
        other = copy.copy(self)
        other._chosen = chosen.over(self._chosen)
        other._effective = other._chosen.over(self._base)
        return other

    def args(self, /, *args: P.args, **kwargs: P.kwargs) -> Args[P]:
        """The arguments of one call, checked and encoded now: a row of `enqueue_many`, with this kind's options.

        Raises: ArgsError.
        """
        return Args(self, self.encode(args, kwargs))

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """The JSON text of a job's args. Raises: ArgsError."""
        return encode_untyped(args, kwargs)

    def encode_together(self, rows: Sequence[Mapping[str, Any]]) -> str | None:
        """The JSON texts of the args of many jobs, with commas between; None: `encode` each by itself."""
        return None

    @property
    def secrets(self) -> frozenset[str]:
        """The arguments that are not to be shown; a bare kind's are known by their names alone."""
        return frozenset()

    def effective(self, source: Kind[...] | None = None) -> Options:
        """The options that count: those of a row's source before those of this kind before the handler's."""
        if source is None or source._chosen is self._chosen:
            return self._effective
        return source._chosen.over(self._chosen).over(self._base)

    def is_same(self, other: Kind[...]) -> bool:
        """Whether this is the same kind, with the same function, whatever its options."""
        return type(self) is type(other) and self.kind == other.kind

    def _check_names(self, unique: Unique | None) -> None:
        """Refuse names in `unique` that no argument has; a bare kind knows no arguments."""


class Args(Generic[P]):
    """The arguments of one call, checked: `text` is their JSON. Not shown by repr, they may be secret."""

    __slots__ = ("source", "text")

    def __init__(self, source: Kind[P], text: str) -> None:
        self.source = source
        self.text = text

    def __repr__(self) -> str:
        return f"<Args of {self.source.kind}>"


class Handler(Kind[P], Generic[P, R_co]):
    """A kind with the function that does its jobs. Calling it calls the function, as if it were not decorated."""

    def __init__(
        self,
        kind: str,
        function: Callable[P, R_co],
        settings: Settings,
        *,
        localns: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(kind, settings.as_options())
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.settings = settings
        with naming(self.kind):
            self.codec = Codec.of(function, localns=localns)
        self.is_async = is_async(function)
        self.executor = _executor(self)
        self._check_names(settings.unique)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        return self.function(*args, **kwargs)

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """The JSON text of a job's args, checked against the function's signature. Raises: ArgsError."""
        return self.codec.encode(args, kwargs)

    def encode_together(self, rows: Sequence[Mapping[str, Any]]) -> str | None:
        return self.codec.encode_together(rows)

    @property
    def secrets(self) -> frozenset[str]:
        return self.codec.secrets

    def resolve(self) -> None:
        """Find the types that the signature names. Raises: RegistrationError."""
        with naming(self.kind):
            self.codec.resolve()

    def is_same(self, other: Kind[...]) -> bool:
        return isinstance(other, Handler) and other.codec is self.codec

    def _check_names(self, unique: Unique | None) -> None:
        for name in unique if isinstance(unique, tuple) else ():
            if name not in self.codec.parameters:
                known = ", ".join(self.codec.parameters) or "none"
                raise OptionError(f"unique: {self.kind} has no argument {checks.show(name)} (known: {known})")


def kind(name: str, /, *, queue: str) -> Kind[...]:
    """A kind by its name, for code that cannot import the handler: its args are checked by the worker alone.

    `max_attempts` and `timeout` are the handler's, unless options say otherwise.
    """
    return Kind(name, Options(queue=checks.name("queue", queue), priority=1))


def needs_kind(value: object) -> Kind[...]:
    """`value`, where it can be enqueued. Raises: OptionTypeError."""
    if isinstance(value, Kind):
        return value
    known = "a function with @app.handler(...), or jobq.kind(name, queue=...)"
    raise OptionTypeError(f"handler: expected {known}, got {type(value).__name__} {checks.show(value)}")


@contextmanager
def naming(kind: str) -> Iterator[None]:
    """Let the codec's errors say which handler they are about."""
    try:
        yield
    except RegistrationError as error:
        raise RegistrationError(f"handler {kind!r}: {error}") from error


def _executor(handler: Handler[..., Any]) -> str:
    """Where the handler runs: as its function is, unless it names an executor that can run it."""
    executor, fitting = handler.settings.executor, "async" if handler.is_async else "thread"
    if handler.settings.resources is not None and executor in ("auto", "async", "thread", "process"):
        raise RegistrationError(
            f'handler {handler.kind!r}: resources: nothing looks at them with executor="{executor}", only "dask" does,'
            " or an executor of your own"
        )
    if executor == "auto":
        return fitting
    if executor in ("async", "thread") and executor != fitting:
        what = "an async function" if handler.is_async else "a plain function"
        raise RegistrationError(
            f'handler {handler.kind!r}: {what} cannot run with executor="{executor}", only "{fitting}"'
        )
    return executor
