"""Async handlers, in the worker's own event loop."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import AsyncExitStack
from types import CoroutineType
from typing import Any

from jobq.context import enter
from jobq.executors.base import Call, enter_all_async
from jobq.verdict import Ended, check_value


class CoroutineExecutor:
    """Awaits the function in the task that it is called in."""

    left_behind: frozenset[int] = frozenset()  # the worker sees for itself when a task does not end

    async def run(self, call: Call) -> Ended:
        enter(call.context)
        try:
            if call.around:
                return check_value(await self._inside(call))
            value = call.function(**call.arguments)
            return check_value(await value if type(value) is CoroutineType else await _awaited(value))
        except asyncio.CancelledError as error:
            if call.context.cancelled:
                raise
            return Ended(error=error)  # leaked by the handler: nobody asked for it
        except BaseException as error:  # SystemExit, KeyboardInterrupt, GeneratorExit too: the worker lives on
            return Ended(error=error)

    async def _inside(self, call: Call) -> Any:
        async with AsyncExitStack() as stack:
            await enter_all_async(stack, call.around)
            return await _awaited(call.function(**call.arguments))

    async def close(self) -> None:
        return None


async def _awaited(value: Any) -> Any:
    """A plain wrapper around an async function hands on its awaitable, or has run it already."""
    return await value if inspect.isawaitable(value) else value
