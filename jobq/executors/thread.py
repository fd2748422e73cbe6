"""Plain handlers, each in a thread. Threads are kept and reused; one that cannot be stopped is left behind."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from queue import SimpleQueue
from typing import Any

from jobq.context import enter
from jobq.executors.base import Call, enter_all
from jobq.executors.limits import ThreadLimits
from jobq.executors.sessions import none_left_open, watch_sessions
from jobq.verdict import Ended, check_value

PATIENCE_SECONDS = 0.5  # what a function that looks at `current().cancelled` has to end once it is told to


class _Work:
    """A call on its way through a thread and back to the loop."""

    __slots__ = ("call", "future", "loop")

    def __init__(self, call: Call, loop: asyncio.AbstractEventLoop) -> None:
        self.call = call
        self.loop = loop
        self.future: asyncio.Future[Ended] = loop.create_future()


class ThreadExecutor:
    """Runs functions in daemon threads, as many as there are calls at a time (the worker's concurrency bounds them, and
    `limits`; a call that has to wait for a thread has not begun, and its timeout does not count).

    Threads of its own rather than the loop's pool: they must not be joined when the interpreter ends, or a function
    that never returns would keep the process alive.
    """

    def __init__(self, limits: ThreadLimits | None = None) -> None:
        watch_sessions()
        self.limits = limits or ThreadLimits()
        self.on_late_end: Callable[[str], None] = lambda _queue: None  # what was left behind has ended
        self._inbox: SimpleQueue[_Work | None] = SimpleQueue()
        self._threads = 0
        self._busy = 0
        self._left_behind: dict[int, str] = {}

    @property
    def left_behind(self) -> Mapping[int, str]:
        """Each with its queue."""
        return self._left_behind

    async def run(self, call: Call) -> Ended:
        queue = call.context.job.queue
        if not self.limits.take(queue):
            await self._wait(call, queue)
        work = _Work(call, asyncio.get_running_loop())
        try:
            self._submit(work)
        except BaseException:
            self.limits.give_back(queue)
            raise
        try:
            return await asyncio.shield(work.future)
        except asyncio.CancelledError:
            self._left_behind[call.context.job.id] = queue  # until it has ended, see _deliver
            await asyncio.wait([work.future], timeout=PATIENCE_SECONDS)
            raise  # whatever it returned: one that was told to stop may have left its work half done

    async def close(self) -> None:
        for _ in range(self._threads):
            self._inbox.put(None)
        self._threads = 0

    async def _wait(self, call: Call, queue: str) -> None:
        if call.attempt is not None:
            call.attempt.waits()
        await self.limits.wait(queue)
        if call.attempt is not None:
            call.attempt.begins()

    def _submit(self, work: _Work) -> None:
        if self._busy >= self._threads:
            threading.Thread(target=self._serve, name=f"jobq-handler-{self._threads + 1}", daemon=True).start()
            self._threads += 1
        self._busy += 1
        self._inbox.put(work)

    def _serve(self) -> None:
        """A thread's life: calls until the None that ends it."""
        pid = os.getpid()
        while (work := self._inbox.get()) is not None:
            ended = contextvars.Context().run(run_here, work.call)
            if os.getpid() != pid:
                os._exit(0)  # a copy that the function has forked, and that came back from it
            with suppress(RuntimeError):  # the loop has ended: this call was left behind, nobody waits for it
                work.loop.call_soon_threadsafe(self._deliver, work, ended)
            del work, ended

    def _deliver(self, work: _Work, ended: Ended) -> None:
        job = work.call.context.job
        self._busy -= 1
        self.limits.give_back(job.queue)
        if not work.future.done():
            work.future.set_result(ended)
        if self._left_behind.pop(job.id, None) is not None:
            self.on_late_end(job.queue)


def run_here(call: Call) -> Ended:
    """Run a plain function in this thread; whatever it raises is a value."""
    enter(call.context)
    job = call.context.job
    try:
        with none_left_open(f"job {job.id} ({job.kind})"):
            return check_value(inside(call))
    except BaseException as error:  # also SystemExit, StopIteration, GeneratorExit: a value, or the loop would suffer
        return Ended(error=error)


def inside(call: Call) -> Any:
    """Call the function, within what is around it."""
    if not call.around:
        return call.function(**call.arguments)
    with ExitStack() as stack:
        enter_all(stack, call.around)
        return call.function(**call.arguments)
