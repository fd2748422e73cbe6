"""The plug-in point: what an executor is given and what it promises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, ExitStack
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jobq.context import Context, CurrentJob
from jobq.model import Claimed
from jobq.verdict import Ended

Around = Callable[[], "AbstractContextManager[Any] | AbstractAsyncContextManager[Any]"]


class Attempt(Protocol):
    """What an executor can learn of the attempt that it runs, and tell the worker; in the event loop's thread."""

    @property
    def job(self) -> Claimed:
        """The row as it was claimed, its args as JSON text: what a function needs that runs elsewhere."""
        ...

    def report(self, name: str, text: str) -> None:
        """Hand on what its function has reported elsewhere: one of `jobq.reports.NAMES`, and its JSON text."""
        ...

    def waits(self) -> None:
        """There is no room to run it: its timeout does not count until `begins`."""
        ...

    def begins(self) -> None:
        """Its function begins: the timeout counts from here."""
        ...

    def completes(self) -> bool:
        """A transaction of its function is about to commit the job's completion. False: it may not, it was stopped."""
        ...

    def completed(self, committed: bool) -> None:
        """How that ended: committed or rolled back."""
        ...

    async def settled(self) -> bool:
        """Whether a commit that nobody can tell of has happened. Raises: LeaseLostError, when it cannot be told."""
        ...


class Call(NamedTuple):
    """One attempt to run: `function(**arguments)` inside each of `around`, with `context` as `jobq.current()`.

    `attempt` is there whenever a worker runs the call.
    """

    function: Callable[..., Any]
    arguments: dict[str, Any]
    context: Context
    around: Sequence[Around] = ()
    attempt: Attempt | None = None

    @property
    def job(self) -> Claimed | CurrentJob:
        """The job, as it is known here: its id, queue and kind."""
        return self.context.job if self.attempt is None else self.attempt.job


class Executor(Protocol):
    """Runs calls, each in an asyncio task of its own."""

    async def run(self, call: Call) -> Ended:
        """Run the call to its end and say how it ended; whatever the function raises, of any class, is a value.

        When the worker cancels the task, the executor stops the function as well as it can and lets the cancellation
        pass within a second. What cannot be stopped is left behind, and listed until it has really ended.
        """
        ...

    @property
    def left_behind(self) -> Collection[int]:
        """Ids of jobs whose function still runs although their task has ended."""
        ...

    async def close(self) -> None:
        """Release what the executor holds; nothing is running any more, but for what was left behind."""
        ...


@runtime_checkable
class Begins(Protocol):
    """An executor whose calls need no asyncio task: a worker asks it to begin one, and has it `run` what it cannot."""

    def begin(self, call: Call) -> asyncio.Future[Ended] | None:
        """Begin the call here and now, in the event loop's thread. None: it would have to wait, `run` it.

        Of the future the same holds as of the task that awaits `run`: when it is cancelled the function is stopped as
        well as that can be done, and within a second the future is cancelled.
        """
        ...


@runtime_checkable
class Starts(Protocol):
    """An executor that has something to start, or to look at, before the worker claims."""

    async def start(self) -> None:
        """Called once a run of the worker, and may be cut off. Raises: WorkerError, when its handlers cannot run."""
        ...


@runtime_checkable
class Bounded(Protocol):
    """An executor that has places for so many calls at a time: a worker claims few more jobs for it than that."""

    @property
    def places(self) -> int: ...


def enter_all(stack: ExitStack, around: Sequence[Around]) -> None:
    """Enter the plain context managers of `app.around`, for a function that runs in a thread."""
    for factory in around:
        manager = factory()
        if not isinstance(manager, AbstractContextManager):
            raise TypeError(f"app.around({factory!r}) gave no context manager that a plain handler can enter")
        stack.enter_context(manager)


async def enter_all_async(stack: AsyncExitStack, around: Sequence[Around]) -> None:
    """Enter the context managers of `app.around`, plain or asynchronous, for an async function."""
    for factory in around:
        manager = factory()
        if isinstance(manager, AbstractAsyncContextManager):
            await stack.enter_async_context(manager)
        else:
            stack.enter_context(manager)
