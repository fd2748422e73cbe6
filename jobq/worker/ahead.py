"""What is claimed ahead: jobs that wait for a free slot of the worker, few enough to start soon, and none for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

from jobq.worker.buffer import Buffer
from jobq.worker.held import Held
from jobq.worker.pace import Pace

LONGEST_WAIT = 0.5  # for a slot, of a job that was claimed ahead
CAREFUL_SECONDS = 10.0  # without claiming ahead, once that brought a job which may not fail once more


class Ahead:
    """`is_allowed` False: nothing may wait but for the slots that are free."""

    def __init__(self, slots: int, give_back: Callable[[Held], None], *, is_allowed: bool) -> None:
        self._slots = slots
        self._give_back = give_back
        self._is_allowed = is_allowed
        self._buffer = Buffer()
        self._pace = Pace()
        self._careful_until = 0.0
        self._has_last = False
        self._ages: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._buffer)

    @property
    def last_priority(self) -> int:
        """Of the jobs that wait for a slot the priority that comes last, 0 when none waits: smaller ones may pass."""
        return self._buffer.last_priority or 0

    def room(self, running: int) -> int:
        """How many more jobs may be claimed while so many run: for free slots, and some ahead while jobs are quick.

        None while more than half of those claimed ahead still wait: claims are to be few and large.
        """
        is_careful = not self._is_allowed or monotonic() < self._careful_until
        ahead = 0 if is_careful else self._pace.ahead(self._slots)
        waiting = len(self._buffer)
        return 0 if 2 * waiting > ahead else max(0, self._slots + ahead - running - waiting)

    def put(self, held: Held) -> None:
        self._buffer.put(held)
        self._has_last |= held.is_last

    def settle_in(self, running: int) -> None:
        """A claim has come in, while so many run: watch what waits. A job that is dead when its worker dies, must not
        be so before it has begun: it is given back."""
        if self._has_last and len(self._buffer) > self._slots - running:
            self._careful_until = monotonic() + CAREFUL_SECONDS
            self.hand_back(lambda held: held.is_last)
        self._has_last = False
        self._watch_age()

    def take(self) -> Held | None:
        """The next to start."""
        return self._buffer.take()

    def ended(self, seconds: float) -> None:
        """A job took so long."""
        self._pace.ended(seconds)

    def remove(self, which: Callable[[Held], bool]) -> list[Held]:
        """Take out those; they will not start."""
        return self._buffer.remove(which)

    def hand_back(self, which: Callable[[Held], bool]) -> None:
        """Give back those."""
        for held in self._buffer.remove(which):
            self._give_back(held)

    def _watch_age(self) -> None:
        """Jobs were quick and are so no longer: others may have room for what was claimed ahead."""
        if self._ages is None and (oldest := self._buffer.oldest) is not None:
            wait = max(0.0, oldest + LONGEST_WAIT - monotonic())
            self._ages = asyncio.get_running_loop().call_later(wait, self._end_wait)

    def _end_wait(self) -> None:
        self._ages = None
        oldest = self._buffer.oldest
        if oldest is not None and monotonic() - oldest >= LONGEST_WAIT:
            self._pace.forget()
            self.hand_back(lambda _: True)
        self._watch_age()
