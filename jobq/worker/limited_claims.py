"""Claims of limited queues: each job with a slot of its queue."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from time import monotonic

from jobq.store import claiming as store
from jobq.worker.claims import Claims
from jobq.worker.groups import Groups
from jobq.worker.limited import LimitedQueues
from jobq.worker.loops import with_jitter


class LimitedClaims:
    """Looks at the limited queues when they are due."""

    def __init__(self, claims: Claims, limited: LimitedQueues, groups: Groups, *, poll_interval: timedelta) -> None:
        self._claims = claims
        self._limited = limited
        self._groups = groups
        self._poll_interval = poll_interval

    async def look(self, room: int) -> None:
        """One look, if it is due: at those in order and at the others, for up to `room` jobs together."""
        if not room or not self._limited.is_due:
            return
        self._limited.begin(with_jitter(self._poll_interval))
        for in_order, asked in self._limited.ask():
            queues, most = self._with_room(asked, room)
            if queues and most > 0 and (kinds := self._groups.kinds_now):
                room -= await self._claim(queues, kinds, in_order=in_order, most=most)

    async def _claim(self, queues: Sequence[str], kinds: Sequence[str], *, in_order: bool, most: int) -> int:
        began = monotonic()
        claim = await self._claims.take(store.claim_slots, queues, kinds=kinds, most=most, in_order=in_order)
        if claim is None:
            return most
        self._limited.absorb(claim, most, took=monotonic() - began)
        self._claims.start(claim.jobs)
        return len(claim.jobs)

    def _with_room(self, queues: Sequence[str], room: int) -> tuple[list[str], int]:
        """Of limited queues those that have room here, and how many jobs may be claimed of them together."""
        rooms = [group.room for group in self._groups]
        left = {queue: min(one.part_of_queue(queue, room) for one in rooms) for queue in queues}
        found = [queue for queue in queues if left[queue]]
        parts = [one.part_of(room) or room for one in rooms]
        return found, min([room, *parts, *(left[queue] for queue in found)])
