"""What a handler can ask about the job that it runs: `jobq.current()`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

from jobq.errors import ContextError
from jobq.model import Claimed

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession
    from sqlalchemy.orm import Session


class Transaction(AbstractContextManager["Session", None], AbstractAsyncContextManager["AsyncSession", None]):
    """The work and the job's completion in one transaction; `with` in a plain handler, `async with` in an async one."""

    def __enter__(self) -> Session:
        raise ContextError("no transaction here: the job's executor does not support it")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        raise ContextError("no transaction here: the job's executor does not support it")

    async def __aenter__(self) -> AsyncSession:
        raise ContextError("no transaction here: the job's executor does not support it")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        raise ContextError("no transaction here: the job's executor does not support it")


@dataclass(frozen=True, slots=True)
class CurrentJob:
    """The job that a handler runs. `attempt` counts claims, `failures` the failed ones before this attempt."""

    id: int
    kind: str
    queue: str
    priority: int
    attempt: int
    failures: int
    max_attempts: int
    run_at: datetime
    created_at: datetime

    @property
    def is_last(self) -> bool:
        """Whether a failure of this attempt makes the job dead."""
        return self.failures + 1 >= self.max_attempts


class Context:
    """The surroundings of one attempt. `state` is what the application's lifespan yielded, None without one."""

    def __init__(
        self, job: CurrentJob, state: Any, open_transaction: Callable[[], Transaction], *, meta: str = "{}"
    ) -> None:
        self.job = job
        self.state = state
        self._meta = meta
        self._open_transaction = open_transaction
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """True once the job should stop (timeout, cancelled, lease lost, shutdown); handlers in threads look at it."""
        return self._cancelled

    @property
    def meta(self) -> dict[str, Any]:
        """What the job's row says besides its args: timeout and keep in seconds, what tracing carries."""
        try:
            found = json.loads(self._meta)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def cancel(self) -> None:
        """Called by the worker: tell the handler to stop."""
        self._cancelled = True

    def transaction(self) -> Transaction:
        """A session whose commit also completes the job: both or neither. Once per attempt.

        The block commits when it ends, fenced, with the completion as its last write. Raises ContextError when used
        twice or in the wrong form, LeaseLostError when the job was taken from this worker meanwhile (rolled back).
        """
        return self._open_transaction()


_current: ContextVar[Context] = ContextVar("jobq_current")


def current() -> Context:
    """The context of the job that is running here. Raises ContextError outside of a job."""
    try:
        return _current.get()
    except LookupError:
        raise ContextError("no job is running here: jobq.current() works inside a handler") from None


def current_id() -> int | None:
    """The id of the job that is running here, None outside of a job."""
    context = _current.get(None)
    return None if context is None else context.job.id


def enter(context: Context) -> None:
    """Make `context` the current one, for the rest of this task or thread's own copy of the variables."""
    _current.set(context)


@contextmanager
def entered(context: Context) -> Iterator[None]:
    """Make `context` the current one within the block."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def view_of(job: Claimed, *, max_attempts: int) -> CurrentJob:
    """What the handler sees of a claimed job."""
    return CurrentJob(
        job.id, job.kind, job.queue, job.priority, job.attempt, job.failures, max_attempts, job.run_at, job.created_at
    )
