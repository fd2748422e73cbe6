"""What a handler can ask about the job that it runs: `jobq.current()`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from contextvars import ContextVar
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from jobq.errors import ContextError, LeaseLostError, StoppedError
from jobq.model import Claimed
from jobq.reports import CHECKPOINT, PROGRESS, Report, checkpoint_json, ignore, progress_json

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


class CurrentJob(NamedTuple):
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

    _cancelled = False
    _is_lost = False
    _checkpoint: str | None = None  # of this attempt

    def __init__(
        self,
        job: CurrentJob,
        state: Any,
        open_transaction: Callable[[], Transaction],
        *,
        meta: str = "{}",
        report: Report = ignore,
    ) -> None:
        self._job = job
        self.state = state
        self._report = report
        self._meta = meta
        self._open_transaction = open_transaction

    @property
    def job(self) -> CurrentJob:
        """The job that runs."""
        return self._job

    @property
    def cancelled(self) -> bool:
        """True once the job should stop (timeout, cancelled, lease lost, shutdown); handlers in threads look at it."""
        return self._cancelled

    def check(self) -> None:
        """Raise StoppedError once the job should stop: a line in the loop of a handler that runs in a thread.

        The job ends by what told it to stop (its timeout, say), whatever the handler makes of the error.
        """
        if self._cancelled:
            raise StoppedError(f"job {self.job.id} ({self.job.kind}) was told to stop: this attempt counts no more")

    @property
    def meta(self) -> dict[str, Any]:
        """What the job's row says besides its args: timeout and keep in seconds, what tracing carries."""
        try:
            found = json.loads(self._meta)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def is_lost(self) -> bool:
        """True once this attempt counts no more: the job was cancelled, is in another hand, or went on without it."""
        return self._is_lost

    def progress(self, fraction: float, message: str = "") -> None:
        """Say how far the job is, 0 to 1, with a word for people (at most 200 characters, the rest is cut).

        Shown by `jobq show` and `jobq list`, `jobq.get(...).progress`. Costs next to nothing and never waits: the
        worker writes the latest once a second, and at the end of the attempt. What a lost attempt says is dropped.

        Raises: OptionTypeError; OptionError, for a fraction outside of 0 to 1.
        """
        self.report(PROGRESS, progress_json(fraction, message, attempt=self.job.attempt))

    def checkpoint(self, state: Mapping[str, Any], /) -> None:
        """Keep where the job is, for its next attempt: a plain JSON object of at most 64 KiB, taken as it is now.

        Written as `progress` is, without waiting: before the end of the attempt however that ends; of a worker that is
        killed the last second may be missing. Each replaces the one before.

        Raises: ArgsError, for what cannot be kept; LeaseLostError, once this attempt counts no more.
        """
        text = checkpoint_json(state)
        if self._is_lost:
            raise LeaseLostError(
                f"job {self.job.id} ({self.job.kind}): attempt {self.job.attempt} counts no more, the job was cancelled"
                " or goes on elsewhere"
            )
        self._checkpoint = text
        self.report(CHECKPOINT, text)

    @property
    def last_checkpoint(self) -> dict[str, Any] | None:
        """What `checkpoint` has kept last, in this attempt or an earlier one; None: nothing yet. A copy each time."""
        found = self.meta.get(CHECKPOINT) if self._checkpoint is None else json.loads(self._checkpoint)
        return found if isinstance(found, dict) else None

    def report(self, name: str, text: str) -> None:
        """Called by what carries reports from elsewhere, in place of `progress` and `checkpoint`."""
        self._report(name, text)

    def cancel(self) -> None:
        """Called by the worker: tell the handler to stop."""
        self._cancelled = True

    def lose(self) -> None:
        """Called by the worker: this attempt counts no more."""
        self._is_lost = True

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
