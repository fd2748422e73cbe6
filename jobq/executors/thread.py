"""Plain handlers, each in a thread. Threads are kept and reused; one that cannot be stopped is left behind."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any, final

from jobq.context import CurrentJob, enter
from jobq.executors.base import Call, enter_all
from jobq.executors.limits import ThreadLimits
from jobq.executors.mailbox import Mailbox, Work
from jobq.executors.sessions import leave_none_open, note_sessions, watch_sessions
from jobq.model import Claimed
from jobq.verdict import Ended, check_value


@final
class ThreadExecutor:
    """Runs functions in daemon threads, as many as there are calls at a time (the worker's concurrency bounds them, and
    `limits`; a call that has to wait for a thread has not begun, and its timeout does not count).

    Threads of its own rather than the loop's pool: they must not be joined when the interpreter ends, or a function
    that never returns would keep the process alive. A thread that has ended a call takes the next one by itself, and
    what has ended goes back to the loop together: to switch between threads costs more than a quick function. A thread
    that takes a call while others wait wakes another thread first, so that none waits behind a slow function.
    """

    def __init__(self, limits: ThreadLimits | None = None) -> None:
        watch_sessions()
        self.limits = limits or ThreadLimits()
        self.on_late_end: Callable[[str], None] = lambda _queue: None  # what was left behind has ended
        self._waiting: deque[Work] = deque()
        self._bell: SimpleQueue[bool] = SimpleQueue()  # False: a thread is to end
        self._has_rung = False  # set before the bell rings, unset before whoever heard it looks
        self._mailbox: Mailbox | None = None
        self._threads = 0
        self._busy = 0
        self._left_behind: dict[int, str] = {}

    @property
    def left_behind(self) -> Mapping[int, str]:
        """Each with its queue."""
        return self._left_behind

    def begin(self, call: Call) -> Work | None:
        """See jobq.executors.base.Begins."""
        job = call.job
        return self._submit(call, job) if self.limits.take(job.queue) else None

    async def run(self, call: Call) -> Ended:
        job = call.job
        if not self.limits.take(job.queue):
            await self._wait(call, job.queue)
        return await self._submit(call, job)

    async def close(self) -> None:
        for _ in range(self._threads):
            self._bell.put(False)
        self._threads = 0

    async def _wait(self, call: Call, queue: str) -> None:
        if call.attempt is not None:
            call.attempt.waits()
        await self.limits.wait(queue)
        if call.attempt is not None:
            call.attempt.begins()

    def _mailbox_of(self, loop: asyncio.AbstractEventLoop) -> Mailbox:
        if self._mailbox is None or self._mailbox.loop is not loop:
            self._mailbox = Mailbox(loop, self._deliver)
        return self._mailbox

    def _submit(self, call: Call, job: Claimed | CurrentJob) -> Work:
        """With a place taken, which is given back when there is no thread for it."""
        work = Work(call, job, self._mailbox_of(asyncio.get_running_loop()), self._leave_behind)
        if self._busy >= self._threads:
            try:
                self._add_thread()
            except BaseException:
                self.limits.give_back(job.queue)
                raise
        self._busy += 1
        self._waiting.append(work)
        if not self._has_rung:
            self._ring()
        return work

    def _add_thread(self) -> None:
        threading.Thread(target=self._serve, name=f"jobq-handler-{self._threads + 1}", daemon=True).start()
        self._threads += 1

    def _ring(self) -> None:
        self._has_rung = True
        self._bell.put(True)

    def _serve(self) -> None:
        """A thread's life: calls, until it is to end."""
        pid = os.getpid()
        while self._bell.get():
            self._has_rung = False
            while self._waiting:
                self._serve_one(pid)

    def _serve_one(self, pid: int) -> None:
        try:
            work = self._waiting.popleft()
        except IndexError:  # another thread was quicker
            return
        if self._waiting and not self._has_rung:
            self._ring()
        ended = contextvars.Context().run(run_here, work.call)
        if os.getpid() != pid:
            os._exit(0)  # a copy that the function has forked, and that came back from it
        work.mailbox.post(work, ended)

    def _deliver(self, work: Work, ended: Ended) -> None:
        job = work.job
        self._busy -= 1
        self.limits.give_back(job.queue)
        work.end(ended)
        if self._left_behind and self._left_behind.pop(job.id, None) is not None:
            self.on_late_end(job.queue)

    def _leave_behind(self, work: Work) -> None:
        """Until it has ended."""
        self._left_behind[work.job.id] = work.job.queue


def run_here(call: Call) -> Ended:
    """Run a plain function in this thread; whatever it raises is a value. In a context of its own."""
    enter(call.context)
    begun = note_sessions()
    try:
        try:
            return check_value(inside(call))
        finally:
            if begun:
                leave_none_open(begun, f"job {call.job.id} ({call.job.kind})")
    except BaseException as error:  # also SystemExit, StopIteration, GeneratorExit: a value, or the loop would suffer
        return Ended(error=error)


def inside(call: Call) -> Any:
    """Call the function, within what is around it."""
    if not call.around:
        return call.function(**call.arguments)
    with ExitStack() as stack:
        enter_all(stack, call.around)
        return call.function(**call.arguments)
