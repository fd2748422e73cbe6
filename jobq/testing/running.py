"""How a test runs handlers: in its own thread, the async ones in an event loop that lasts for the call."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from jobq.context import entered
from jobq.errors import ContextError
from jobq.executors import Call, CoroutineExecutor
from jobq.executors.thread import inside
from jobq.registry import App
from jobq.verdict import Ended, check_value

T = TypeVar("T")


class Unset:
    """No state was given: the application's lifespan is opened."""


UNSET = Unset()


def run_plain(call: Call) -> Ended:
    """A plain function, in this thread, with the test's context variables."""
    with entered(call.context):
        try:
            return check_value(inside(call))
        except BaseException as error:
            return Ended(error=error)


async def run_async(call: Call) -> Ended:
    """An async function, in this task."""
    with entered(call.context):
        return await CoroutineExecutor().run(call)


@asynccontextmanager
async def state_of(app: App, state: Any) -> AsyncIterator[Any]:
    """What is `current().state`: given, or what the application's lifespan yields within the block."""
    if not isinstance(state, Unset) or app.lifespan_function is None:
        yield None if isinstance(state, Unset) else state
        return
    async with app.lifespan_function() as opened:
        yield opened


class OwnLoop:
    """An event loop for the async parts of a test without one, made when first needed."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Raises: ContextError, where another event loop runs."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._runner.run(coroutine, context=contextvars.copy_context())
        coroutine.close()
        raise ContextError("an event loop runs here: await the `_async` twin with an AsyncSession or AsyncConnection")

    def close(self) -> None:
        self._runner.close()


@contextmanager
def own_loop(app: App, state: Any) -> Iterator[tuple[OwnLoop, Any]]:
    """The loop, and what is `current().state`. The lifespan is entered and left in one task, as the worker does."""
    loop = OwnLoop()
    try:
        if not isinstance(state, Unset) or app.lifespan_function is None:
            yield loop, None if isinstance(state, Unset) else state
            return
        lifespan = _Lifespan(app)
        opened = loop.run(lifespan.open())
        try:
            yield loop, opened
        finally:
            loop.run(lifespan.close())
    finally:
        loop.close()


class _Lifespan:
    """Holds a lifespan open in a task of its own, while the loop stands still between two jobs."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._closing = asyncio.Event()

    async def open(self) -> Any:
        opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._task = asyncio.get_running_loop().create_task(self._hold(opened))
        await asyncio.wait([self._task, opened], return_when=asyncio.FIRST_COMPLETED)
        return self._task.result() if self._task.done() else opened.result()

    async def close(self) -> None:
        self._closing.set()
        await self._task

    async def _hold(self, opened: asyncio.Future[Any]) -> None:
        async with state_of(self._app, UNSET) as state:
            opened.set_result(state)
            await self._closing.wait()
