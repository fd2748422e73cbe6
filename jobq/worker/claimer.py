"""Looks for due jobs while there is room, and waits until it is told of more or has to look by itself."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic

import anyio

from jobq.fairness import part_of
from jobq.faults import can_wait_out
from jobq.model import Position
from jobq.worker.alarm import Alarm
from jobq.worker.claims import Claims
from jobq.worker.groups import Groups
from jobq.worker.lane_claims import LaneClaims
from jobq.worker.limited import LimitedQueues
from jobq.worker.limited_claims import LimitedClaims
from jobq.worker.link import Link
from jobq.worker.loops import wait_for, with_jitter
from jobq.worker.runner import Runner
from jobq.worker.surveyor import Surveyor

# After a notification: others of the same burst may have been held back by the sender's token bucket.
# At some time around these, or jobs that come at even intervals might all meet a claim that is under way.
AFTERTHOUGHTS = (0.05, 0.1, 0.2)
BETWEEN_EMPTY_CLAIMS = 0.05  # an idle worker that is told again and again, in vain, looks this often


class Claimer:
    """The loop that claims."""

    def __init__(
        self,
        link: Link,
        claims: Claims,
        groups: Groups,
        limited: LimitedQueues,
        surveyor: Surveyor,
        runner: Runner,
        *,
        poll_interval: timedelta,
        stop: anyio.Event,
    ) -> None:
        self.has_looked = False  # a claim, or a look that found no room for one, has succeeded
        self._behind_since: float | None = None
        self._link = link
        self._claims = claims
        self._groups = groups
        self._lanes = LaneClaims(claims, groups, surveyor, runner, poll_interval=poll_interval)
        self._limited = limited
        self._slots = LimitedClaims(claims, limited, groups, poll_interval=poll_interval)
        self._surveyor = surveyor
        self._runner = runner
        self._poll_interval = poll_interval
        self._stop = stop
        self._alarm = Alarm()
        self._is_told = False
        self._is_urgent = False  # something is due that goes before jobs which wait for a slot here
        self._came_told = False  # to its last look
        self._afterthoughts: list[float] = []

    @property
    def behind_for(self) -> timedelta:
        """For how long it has been trying to look for jobs without success; 0 while it waits for room or for work."""
        since = self._behind_since
        return timedelta(seconds=0.0 if since is None else monotonic() - since)

    def wake(self) -> None:
        """There is room again, or a reason to stop."""
        self._alarm.ring()

    def tell(self, position: Position | None) -> None:
        """A notification: something is due. None: look everywhere, notifications may have been missed."""
        if position is None:
            self._lanes.sweep_next()
            self._limited.tell()
        elif position.queue in self._limited:
            self._limited.tell()
            self._alarm.ring()
            return
        elif self._surveyor.admits(position.queue):
            self._groups.set_back(position)
            self._is_urgent |= position.priority < self._runner.last_priority
        else:
            return
        self._is_told = True
        self._alarm.ring()

    def has_room(self, queue: str) -> None:
        """There is a place again, or a thread, where all were taken."""
        self._lanes.was_empty = False
        if queue in self._limited:
            self._limited.freed(timedelta(0))
        self._is_told = True
        self._alarm.ring()

    def freed(self, wait: timedelta) -> None:
        """A slot of a limited queue was freed, and is ready after `wait`."""
        self._limited.freed(wait)
        self._alarm.ring()

    async def run(self) -> None:
        """Claim until told to stop."""
        while not self._stop.is_set():
            try:
                with self._looking():
                    is_full = await self.run_once()
                self._link.worked("claimer")
                await (self._wait_for_room() if is_full else self._wait_for_work())
            except Exception as error:
                if not can_wait_out(error):
                    raise
                await wait_for(self._stop, self._link.failed("claimer", error))

    async def run_once(self) -> bool:
        """Clear up, then claim as much as there is room for. True: there was as much as asked for, or more."""
        self._came_told, self._is_told = self._is_told, False
        await self._claims.clear_up()
        room = self._runner.room
        if not room:
            self._is_urgent = False
            await self._lanes.claim_urgent()
            return True
        others = 0 if self._lanes.was_empty else self._groups.weight
        await self._slots.look(part_of(room, self._limited.weight, others))
        if not self._groups.queues:
            return not self._runner.room
        return await self._lanes.claim()

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Behind from the beginning of the first of the looks that fail or last, until one succeeds."""
        self._behind_since = self._behind_since or monotonic()
        yield
        self._behind_since, self.has_looked = None, True

    async def _wait_for_room(self) -> None:
        """Until there is; meanwhile more urgent jobs are looked for when one is told of, or the poll is due."""
        ends = monotonic() + with_jitter(self._poll_interval)
        while not self._runner.room and not self._is_urgent and not self._stop.is_set():
            await self._woken_within(max(0.0, ends - monotonic()) if self._runner.last_priority else None)
            if self._runner.last_priority and monotonic() >= ends:
                return

    async def _wait_for_work(self) -> None:
        """Until told, or the poll is due. A told worker looks again soon after: of a burst not every job is told."""
        began = monotonic()
        ends = began + (self._afterthoughts.pop(0) if self._afterthoughts else with_jitter(self._poll_interval))
        while not self._is_told and not self._stop.is_set() and monotonic() < min(ends, self._lanes.reopens_at):
            if self._limited.is_due and self._runner.room:
                with self._looking():
                    await self._claims.clear_up()
                    await self._slots.look(self._runner.room)
            else:
                await self._woken_within(self._seconds_until(ends))
        if self._is_told:
            self._afterthoughts = [seconds * random.uniform(0.6, 1.4) for seconds in AFTERTHOUGHTS]
            if self._lanes.was_empty and self._came_told:
                await wait_for(self._stop, began + BETWEEN_EMPTY_CLAIMS - monotonic())

    def _seconds_until(self, ends: float) -> float:
        """To the end of the wait, or until a limited queue is due: with no room for its job, ending one wakes us."""
        due_at = self._limited.due_at if self._runner.room and self._limited.weight else math.inf
        return max(0.0, min(ends, self._lanes.reopens_at, due_at) - monotonic())

    async def _woken_within(self, seconds: float | None) -> None:
        self._runner.wants_room = True
        await self._alarm.sleep(seconds)
