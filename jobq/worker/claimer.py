"""Takes due jobs while there is room, by its lanes; whatever is unclear about a claim is cleared up before the next."""

from __future__ import annotations

import logging
import math
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
from jobq.worker.lanes import Lanes
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
AFTERTHOUGHTS = (0.05, 0.1, 0.2)
BETWEEN_EMPTY_CLAIMS = 0.05  # an idle worker that is told again and again looks this often
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
        lanes: Lanes,
        limited: LimitedQueues,
        surveyor: Surveyor,
        membership: Membership,
        runner: Runner,
        completer: Completer,
        *,
        kinds: Sequence[str],
        poll_interval: timedelta,
        stop: anyio.Event,
    ) -> None:
        self.is_unclear = False  # a claim's answer was lost: jobs may carry our id that we do not know of
        self.has_looked = False  # a claim, or a look that found no room for one, has succeeded
        self._behind_since: float | None = None
        self._database = database
        self._link = link
        self._counters = counters
        self._lease = lease
        self._lanes = lanes
        self._limited = limited
        self._surveyor = surveyor
        self._membership = membership
        self._runner = runner
        self._completer = completer
        self._kinds = kinds
        self._poll_interval = poll_interval
        self._stop = stop
        self._wake = anyio.Event()
        self._is_told = False
        self._is_urgent = False  # something is due that goes before jobs which wait for a slot here
        self._was_empty = False
        self._afterthoughts: list[float] = []
        self._again_at: float | None = None  # once more, a lease after a reconcile
        self._sweep_at = 0.0
        self._reopens_at = math.inf  # when the next paused queue is so no longer

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
            self._lanes.set_back(position)
            self._is_urgent |= position.priority < self._runner.last_priority
        else:
            return
        self._is_told = True
        self._wake.set()

    def has_thread(self, queue: str) -> None:
        """A queue whose threads were all taken, or a worker, has one again."""
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
        self._is_told = False
        await self._clear_up()
        room = self._runner.room
        if not room:
            await self._claim_urgent()
            return True
        others = 0 if self._was_empty else self._lanes.weight
        await self._claim_limited(part_of(room, self._limited.weight, others))
        room = self._runner.room
        if room == 0 or not self._lanes.queues:
            return room == 0
        return await self._claim(room)

    async def _claim_limited(self, room: int) -> None:
        """Look at the limited queues, if they are due."""
        if not room or not self._limited.is_due:
            return
        self._limited.begin(with_jitter(self._poll_interval))
        for in_order, asked in self._limited.ask():
            queues, most = self._with_threads(asked, room)
            if queues and most > 0:
                room -= await self._claim_slots(queues, in_order=in_order, most=most)

    async def _claim_slots(self, queues: Sequence[str], *, in_order: bool, most: int) -> int:
        began = monotonic()
        claim = await self._take(store.claim_slots, queues, most=most, in_order=in_order)
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
                self._lanes.set_back(position)

    async def _join_anew(self) -> None:
        """What ended under the old id is recorded first, if that is still possible: what is given back runs again."""
        with anyio.move_on_after(RECORD_SECONDS):
            await self._completer.drained()
        await self._membership.join()
        self.is_unclear = False
        self._lanes.forget()

    async def _claim(self, room: int) -> bool:
        threads = self._runner.threads
        if threads.is_full and not self._kinds_now:
            return False
        is_sweep = monotonic() >= min(self._sweep_at, self._reopens_at)
        if is_sweep:
            self._lanes.forget()
        room = threads.part_of(room) or room
        asked = self._lanes.ask(room, part_of=threads.part_of_queue, is_narrow=threads.is_full)
        if not asked:
            return False
        began = monotonic()
        claim = await self._take(store.claim, asked, most=room)
        if claim is None:
            return self._lease.worker_id is None
        if is_sweep:
            self._plan_sweep(monotonic() - began)
        self._reopens_at = math.inf if claim.next_at is None else began + (claim.next_at - claim.now).total_seconds()
        self._lanes.absorb(asked, claim, room=room)
        self._was_empty = not claim.jobs
        self._start(claim)
        return len(claim.jobs) >= room or self._lanes.has_more

    async def _claim_urgent(self) -> None:
        """Jobs that go before those which wait for a slot here: they start with the next one that is free."""
        self._is_urgent = False
        threads = self._runner.threads
        if threads.is_full and not self._kinds_now:
            return
        most = threads.part_of(MOST_URGENT) or MOST_URGENT
        asked = self._lanes.ask_above(
            self._runner.last_priority, most, part_of=threads.part_of_queue, is_narrow=threads.is_full
        )
        if asked and (claim := await self._take(store.claim, asked, most=most)) is not None:
            self._lanes.absorb_above(asked, claim, room=most)
            self._start(claim)

    async def _take(self, function: Callable[..., Claim], asked: Sequence[Any], **limits: Any) -> Claim | None:
        """One claim; None when the lease was lost before or meanwhile: joining anew gives back what it took."""
        worker_id = self._lease.worker_id
        if worker_id is None:
            return None
        self.is_unclear = True
        try:
            claim = await self._database.run(function, asked, worker_id=worker_id, kinds=self._kinds_now, **limits)
        except Exception as error:
            self.is_unclear = sqlstate(error) is None or is_connection_failure(error)  # else: refused, nothing claimed
            raise
        if self._lease.worker_id != worker_id:
            return None
        self.is_unclear = False
        return claim

    @property
    def _kinds_now(self) -> Sequence[str]:
        """Without those that would wait for a thread: other workers may have one."""
        return self._runner.threads.without(self._kinds) if self._runner.threads.is_full else self._kinds

    def _with_threads(self, queues: Sequence[str], room: int) -> tuple[list[str], int]:
        """Of limited queues those that have a thread left, and how many jobs may be claimed of them together."""
        threads = self._runner.threads
        left = {queue: threads.part_of_queue(queue, room) for queue in queues}
        found = [queue for queue in queues if left[queue] and self._kinds_now]
        return found, min([threads.part_of(room) or room, *(left[queue] for queue in found)])

    def _start(self, claim: Claim) -> None:
        self._counters.claims += 1
        self._counters.claimed += len(claim.jobs)
        self._runner.receive(claim.jobs)

    def _plan_sweep(self, took: float) -> None:
        is_first = self._counters.claims == 0  # its time is that of connecting and planning
        share = 0.0 if is_first else SWEEP_SHARE * took * self._surveyor.live_workers
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
            self._afterthoughts = list(AFTERTHOUGHTS)
            if self._was_empty:
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
