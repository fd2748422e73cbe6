"""Takes due jobs while there is room, by its lanes; whatever is unclear about a claim is cleared up before the next."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic
from typing import Any

import anyio

from jobq.database import Database
from jobq.fairness import part_of
from jobq.faults import can_wait_out, is_connection_failure, sqlstate
from jobq.model import Position
from jobq.store import claiming as store
from jobq.store.claiming import Claim
from jobq.worker.completer import Completer
from jobq.worker.groups import Group, Groups
from jobq.worker.lease import Lease
from jobq.worker.limited import LimitedQueues
from jobq.worker.link import Link
from jobq.worker.loops import wait_for, with_jitter
from jobq.worker.membership import Membership
from jobq.worker.runner import Runner
from jobq.worker.stats import Counters
from jobq.worker.surveyor import Surveyor

logger = logging.getLogger("jobq.worker")

# After a notification: others of the same burst may have been held back by the sender's token bucket.
# At some time around these, or jobs that come at even intervals might all meet a claim that is under way.
AFTERTHOUGHTS = (0.05, 0.1, 0.2)
BETWEEN_EMPTY_CLAIMS = 0.05  # an idle worker that is told again and again, in vain, looks this often
RECORD_SECONDS = 5.0
MOST_URGENT = 20  # jobs in one claim beyond the room that there is
SWEEP_SHARE = 50  # a sweep every 50 times its own duration and worker: 2 % of a core for the whole fleet


class Claimer:
    """The loop that claims. It also owns the worker's identity: with the lease lost, it joins anew before it claims."""

    def __init__(
        self,
        database: Database,
        link: Link,
        counters: Counters,
        lease: Lease,
        groups: Groups,
        limited: LimitedQueues,
        surveyor: Surveyor,
        membership: Membership,
        runner: Runner,
        completer: Completer,
        *,
        poll_interval: timedelta,
        stop: anyio.Event,
    ) -> None:
        self.is_unclear = False  # a claim's answer was lost, and nothing has been reconciled since
        self.has_looked = False  # a claim, or a look that found no room for one, has succeeded
        self._behind_since: float | None = None
        self._database = database
        self._link = link
        self._counters = counters
        self._lease = lease
        self._groups = groups
        self._limited = limited
        self._surveyor = surveyor
        self._membership = membership
        self._runner = runner
        self._completer = completer
        self._poll_interval = poll_interval
        self._stop = stop
        self._wake = anyio.Event()
        self._is_told = False
        self._is_urgent = False  # something is due that goes before jobs which wait for a slot here
        self._was_empty = False
        self._came_told = False  # to its last look
        self._afterthoughts: list[float] = []
        self._again_at: float | None = None  # once more, a lease after a reconcile
        self._sweep_at = 0.0
        self._reopens_at = math.inf  # when the next paused queue is so no longer

    @property
    def may_have_unknown(self) -> bool:
        """Jobs may carry our id that we do not know of: a claim that was not answered may come late."""
        return self.is_unclear or self._again_at is not None

    @property
    def behind_for(self) -> timedelta:
        """For how long it has been trying to look for jobs without success; 0 while it waits for room or for work."""
        since = self._behind_since
        return timedelta(seconds=0.0 if since is None else monotonic() - since)

    def wake(self) -> None:
        """There is room again, or a reason to stop."""
        self._wake.set()

    def tell(self, position: Position | None) -> None:
        """A notification: something is due. None: look everywhere, notifications may have been missed."""
        if position is None:
            self._sweep_at = 0.0
            self._limited.tell()
        elif position.queue in self._limited:
            self._limited.tell()
            self._wake.set()
            return
        elif self._surveyor.admits(position.queue):
            self._groups.set_back(position)
            self._is_urgent |= position.priority < self._runner.last_priority
        else:
            return
        self._is_told = True
        self._wake.set()

    def has_room(self, queue: str) -> None:
        """There is a place again, or a thread, where all were taken."""
        self._was_empty = False
        if queue in self._limited:
            self._limited.freed(timedelta(0))
        self._is_told = True
        self._wake.set()

    def freed(self, wait: timedelta) -> None:
        """A slot of a limited queue was freed, and is ready after `wait`."""
        self._limited.freed(wait)
        self._wake.set()

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

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Behind from the beginning of the first of the looks that fail or last, until one succeeds."""
        self._behind_since = self._behind_since or monotonic()
        yield
        self._behind_since, self.has_looked = None, True

    async def run_once(self) -> bool:
        """Clear up, then claim as much as there is room for. True: there was as much as asked for, or more."""
        self._came_told, self._is_told = self._is_told, False
        await self._clear_up()
        room = self._runner.room
        if not room:
            await self._claim_urgent()
            return True
        others = 0 if self._was_empty else self._groups.weight
        await self._claim_limited(part_of(room, self._limited.weight, others))
        if not self._groups.queues:
            return not self._runner.room
        return await self._claim()

    async def _claim_limited(self, room: int) -> None:
        """Look at the limited queues, if they are due."""
        if not room or not self._limited.is_due:
            return
        self._limited.begin(with_jitter(self._poll_interval))
        for in_order, asked in self._limited.ask():
            queues, most = self._with_room(asked, room)
            if queues and most > 0 and (kinds := self._groups.kinds_now):
                room -= await self._claim_slots(queues, kinds, in_order=in_order, most=most)

    async def _claim_slots(self, queues: Sequence[str], kinds: Sequence[str], *, in_order: bool, most: int) -> int:
        began = monotonic()
        claim = await self._take(store.claim_slots, queues, kinds=kinds, most=most, in_order=in_order)
        if claim is None:
            return most
        self._limited.absorb(claim, most, took=monotonic() - began)
        self._start(claim)
        return len(claim.jobs)

    async def _clear_up(self) -> None:
        if self._lease.worker_id is None:
            await self._join_anew()
        self.is_unclear |= self._completer.take_unrecorded()
        if self.is_unclear or (self._again_at is not None and monotonic() >= self._again_at):
            was_unclear = self.is_unclear
            positions = await self._membership.reconcile()
            self.is_unclear = False
            self._again_at = monotonic() + self._lease.length.total_seconds() if was_unclear else None
            self._counters.reconciled += len(positions)
            for position in positions:
                self._groups.set_back(position)

    async def _join_anew(self) -> None:
        """What ended under the old id is recorded first, if that is still possible: what is given back runs again."""
        with anyio.move_on_after(RECORD_SECONDS):
            await self._completer.drained()
        await self._membership.join()
        self.is_unclear = False
        self._groups.forget()

    async def _claim(self) -> bool:
        is_sweep = monotonic() >= min(self._sweep_at, self._reopens_at)
        if is_sweep:
            self._groups.forget()
        began, is_first = monotonic(), self._counters.claims == 0
        self._reopens_at, self._was_empty = math.inf, True
        is_full = [await self._claim_group(group) for group in self._groups]
        if is_sweep:
            self._plan_sweep(0.0 if is_first else monotonic() - began)  # the first one connects and plans
        return any(is_full)

    async def _claim_group(self, group: Group) -> bool:
        """True: there was as much as asked for, or more, or no room to ask."""
        if not self._runner.room:
            return True
        if not group.kinds_now:
            return False
        lanes, room = group.lanes, group.room.part_of(self._runner.room) or self._runner.room
        asked = lanes.ask(room, part_of=group.room.part_of_queue, is_narrow=group.room.is_full)
        if not asked:
            return False
        began = monotonic()
        claim = await self._take(store.claim, asked, kinds=group.kinds_now, most=room)
        if claim is None:
            return self._lease.worker_id is None
        if claim.next_at is not None:
            self._reopens_at = min(self._reopens_at, began + (claim.next_at - claim.now).total_seconds())
        lanes.absorb(asked, claim, room=room)
        self._was_empty &= not claim.jobs
        self._start(claim)
        return len(claim.jobs) >= room or lanes.has_more

    async def _claim_urgent(self) -> None:
        """Jobs that go before those which wait for a slot here: they start with the next one that is free."""
        self._is_urgent = False
        for group in self._groups:
            most = group.room.part_of(MOST_URGENT) or MOST_URGENT
            asked = group.lanes.ask_above(
                self._runner.last_priority, most, part_of=group.room.part_of_queue, is_narrow=group.room.is_full
            )
            if asked and group.kinds_now:
                claim = await self._take(store.claim, asked, kinds=group.kinds_now, most=most)
                if claim is not None:
                    group.lanes.absorb_above(asked, claim, room=most)
                    self._start(claim)

    async def _take(self, function: Callable[..., Claim], asked: Sequence[Any], **limits: Any) -> Claim | None:
        """One claim; None when the lease was lost before or meanwhile: joining anew gives back what it took."""
        worker_id = self._lease.worker_id
        if worker_id is None:
            return None
        self.is_unclear = True
        try:
            claim = await self._database.run(function, asked, worker_id=worker_id, **limits)
        except Exception as error:
            self.is_unclear = sqlstate(error) is None or is_connection_failure(error)  # else: refused, nothing claimed
            raise
        if self._lease.worker_id != worker_id:
            return None
        self.is_unclear = False
        return claim

    def _with_room(self, queues: Sequence[str], room: int) -> tuple[list[str], int]:
        """Of limited queues those that have room here, and how many jobs may be claimed of them together."""
        rooms = [group.room for group in self._groups]
        left = {queue: min(one.part_of_queue(queue, room) for one in rooms) for queue in queues}
        found = [queue for queue in queues if left[queue]]
        parts = [one.part_of(room) or room for one in rooms]
        return found, min([room, *parts, *(left[queue] for queue in found)])

    def _start(self, claim: Claim) -> None:
        self._counters.claims += 1
        self._counters.claimed += len(claim.jobs)
        self._runner.receive(claim.jobs)

    def _plan_sweep(self, took: float) -> None:
        share = SWEEP_SHARE * took * self._surveyor.live_workers
        self._sweep_at = monotonic() + max(with_jitter(self._poll_interval), share)

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
        while not self._is_told and not self._stop.is_set() and monotonic() < min(ends, self._reopens_at):
            if self._limited.is_due and self._runner.room:
                with self._looking():
                    await self._clear_up()
                    await self._claim_limited(self._runner.room)
            else:
                await self._woken_within(self._seconds_until(ends))
        if self._is_told:
            self._afterthoughts = [seconds * random.uniform(0.6, 1.4) for seconds in AFTERTHOUGHTS]
            if self._was_empty and self._came_told:
                await wait_for(self._stop, began + BETWEEN_EMPTY_CLAIMS - monotonic())

    def _seconds_until(self, ends: float) -> float:
        """To the end of the wait, or until a limited queue is due: with no room for its job, ending one wakes us."""
        due_at = self._limited.due_at if self._runner.room and self._limited.weight else math.inf
        return max(0.0, min(ends, self._reopens_at, due_at) - monotonic())

    async def _woken_within(self, seconds: float | None) -> None:
        self._runner.wants_room = True
        with anyio.move_on_after(seconds):
            await self._wake.wait()
        self._wake = anyio.Event()
