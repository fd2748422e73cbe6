"""How what has ended in threads comes back to the event loop: together, since each word to a loop is a system call."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from jobq.context import CurrentJob
from jobq.executors.base import Call
from jobq.model import Claimed
from jobq.verdict import Ended


class Work:
    """A call on its way through a thread and back to the loop."""

    __slots__ = ("call", "future", "job", "mailbox")

    def __init__(self, call: Call, job: Claimed | CurrentJob, mailbox: Mailbox) -> None:
        self.call = call
        self.job = job
        self.mailbox = mailbox
        self.future: asyncio.Future[Ended] = mailbox.loop.create_future()


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
