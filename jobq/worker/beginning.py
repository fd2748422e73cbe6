"""Tasks that begin at once, where Python can do that."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any


def begin(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
    """A task for it, on the loop that runs.

    From Python 3.12 on its first step is made here and now: a turn of the event loop less, and one that ends with that
    step is never listed among `asyncio.all_tasks()`. A loop's own task factory is obeyed.
    """
    if sys.version_info >= (3, 12) and loop.get_task_factory() is None:
        return asyncio.Task(coroutine, loop=loop, name=name, eager_start=True)
    return loop.create_task(coroutine, name=name)
