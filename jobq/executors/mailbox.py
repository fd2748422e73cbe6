"""How what has ended in threads comes back to the event loop: together, since each word to a loop is a system call."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from jobq.context import CurrentJob
from jobq.executors.base import Call
from jobq.executors.patience import AwakeTimer
from jobq.model import Claimed
from jobq.verdict import Ended

PATIENCE_SECONDS = 0.5  # what a function that looks at `current().cancelled` has to end once it is told to


class Work(asyncio.Future[Ended]):
    """A call on its way through a thread and back to the loop.

    One that is cancelled waits for its function first, and is left behind when that does not end. Whatever it returns
    then does not count: one that was told to stop may have left its work half done.
    """

    __slots__ = ("_leave_behind", "_patience", "call", "job", "mailbox")

    def __init__(
        self, call: Call, job: Claimed | CurrentJob, mailbox: Mailbox, leave_behind: Callable[[Work], None]
    ) -> None:
        super().__init__(loop=mailbox.loop)
        self.call = call
        self.job = job
        self.mailbox = mailbox
        self._leave_behind = leave_behind
        self._patience: AwakeTimer | None = None

    def cancel(self, msg: Any | None = None) -> bool:
        """Whether it is going to be cancelled."""
        if self.done():
            return False
        if self._patience is None:
            self._patience = AwakeTimer(PATIENCE_SECONDS, self._give_up, msg)
        return True

    def end(self, ended: Ended) -> None:
        """Its function has ended."""
        if self._patience is not None:
            self._patience.cancel()
            super().cancel()
        elif not self.done():
            self.set_result(ended)

    def _give_up(self, msg: Any | None) -> None:
        self._leave_behind(self)
        super().cancel(msg)


class Mailbox:
    """Of one event loop: a worker may run again in another one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, deliver: Callable[[Work, Ended], None]) -> None:
        self.loop = loop
        self._deliver = deliver
        self._ended: deque[tuple[Work, Ended]] = deque()
        self._has_posted = False  # set before the word to the loop, unset before that looks

    def post(self, work: Work, ended: Ended) -> None:
        """From a thread. Once the loop has ended nobody waits for it any more: the call was left behind."""
        self._ended.append((work, ended))
        if not self._has_posted:
            self._has_posted = True
            try:
                self.loop.call_soon_threadsafe(self._empty)
            except RuntimeError:
                self._ended.clear()
                self._has_posted = False

    def _empty(self) -> None:
        self._has_posted = False
        while self._ended:
            self._deliver(*self._ended.popleft())
