"""Claims by lanes: each group of kinds from where its lanes were read to, now and then from their beginning."""

from __future__ import annotations

import math
from datetime import timedelta
from time import monotonic

from jobq.store import claiming as store
from jobq.store.claiming import Claim
from jobq.worker.claims import Claims
from jobq.worker.groups import Group, Groups
from jobq.worker.loops import with_jitter
from jobq.worker.runner import Runner
from jobq.worker.surveyor import Surveyor

MOST_URGENT = 20  # jobs in one claim beyond the room that there is
SWEEP_SHARE = 50  # a sweep every 50 times its own duration and worker: 2 % of a core for the whole fleet


class LaneClaims:
    """Claims of the queues that have no limit."""

    def __init__(
        self, claims: Claims, groups: Groups, surveyor: Surveyor, runner: Runner, *, poll_interval: timedelta
    ) -> None:
        self.was_empty = False  # the last claim brought nothing
        self.reopens_at = math.inf  # when the next paused queue is so no longer
        self._claims = claims
        self._groups = groups
        self._surveyor = surveyor
        self._runner = runner
        self._poll_interval = poll_interval
        self._has_claimed = False
        self._sweep_at = 0.0

    def sweep_next(self) -> None:
        """The next claim reads the lanes from their beginning: notifications may have been missed."""
        self._sweep_at = 0.0

    async def claim(self) -> bool:
        """As much as there is room for, of each group. True: there was as much as asked for, or more."""
        is_sweep = monotonic() >= min(self._sweep_at, self.reopens_at)
        if is_sweep:
            self._groups.forget()
        began, is_first = monotonic(), not self._has_claimed
        self.reopens_at, self.was_empty = math.inf, True
        is_full = [await self._claim_group(group) for group in self._groups]
        if is_sweep:
            self._plan_sweep(0.0 if is_first else monotonic() - began)  # the first one plans, and may connect
        return any(is_full)

    async def claim_urgent(self) -> None:
        """Jobs that go before those which wait for a slot here: they start with the next one that is free."""
        for group in self._groups:
            most = group.room.part_of(MOST_URGENT) or MOST_URGENT
            asked = group.lanes.ask_above(
                self._runner.last_priority, most, part_of=group.room.part_of_queue, is_narrow=group.room.is_full
            )
            if asked and group.kinds_now:
                claim = await self._claims.take(store.claim, asked, kinds=group.kinds_now, most=most)
                if claim is not None:
                    group.lanes.absorb_above(asked, claim, room=most)
                    self._start(claim, group)

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
        claim = await self._claims.take(store.claim, asked, kinds=group.kinds_now, most=room)
        if claim is None:
            return not self._claims.are_possible
        if claim.next_at is not None:
            self.reopens_at = min(self.reopens_at, began + (claim.next_at - claim.now).total_seconds())
        lanes.absorb(asked, claim, room=room)
        self.was_empty &= not claim.jobs
        self._start(claim, group)
        return len(claim.jobs) >= room or lanes.has_more

    def _start(self, claim: Claim, group: Group) -> None:
        self._has_claimed = True
        self._claims.start(group.lanes.in_turns(claim.jobs))

    def _plan_sweep(self, took: float) -> None:
        share = SWEEP_SHARE * took * self._surveyor.live_workers
        self._sweep_at = monotonic() + max(with_jitter(self._poll_interval), share)
