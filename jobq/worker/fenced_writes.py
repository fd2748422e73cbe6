"""Writes of ends, each fenced. Where a try got no answer, what the fence refuses is read: that may have written it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import sqlalchemy.exc as sa_exc

from jobq.database import Database
from jobq.model import Claimed
from jobq.store import ending as store
from jobq.store import putting_back, recorded
from jobq.store.ending import Ending, Fence


class FencedWrites:
    """Each tells which ends, or whether the one, are this worker's: written now, or by a try before."""

    def __init__(self, database: Database) -> None:
        self.is_unsure = False  # a try got no answer, or only in part
        self._database = database

    async def finish_done(
        self, jobs: Sequence[Claimed], outcomes: Sequence[str | None], *, worker_id: int, keep: timedelta
    ) -> set[int] | None:
        """Jobs of one id of the worker that ended well; None: all of them."""
        rows = [job.id for job in jobs], [job.attempt for job in jobs], [job.place for job in jobs], outcomes
        try:
            mine = await self._database.run(store.finish_done, *rows, worker_id=worker_id, keep=keep)
        except sa_exc.DBAPIError:
            self.is_unsure = True  # of its two statements the first may be written, whatever the second has met
            raise
        if mine is not None and self.is_unsure:
            mine |= await self._recorded([Fence(job.id, job.attempt, worker_id) for job in jobs])
        return mine

    async def finish(self, endings: Sequence[Ending]) -> set[int]:
        """Jobs of one id of the worker that ended for good, and have no slot."""
        mine = await self._database.run(store.finish, endings)
        missing = [ending.fence for ending in endings if ending.fence.id not in mine]
        if missing and self.is_unsure:
            mine |= await self._recorded(missing)
        return mine

    async def finish_one(self, ending: Ending) -> bool:
        """A job that ended for good, with or without a slot."""
        if ending.slot_wait is None:
            return ending.fence.id in await self.finish([ending])
        is_mine = await self._database.run(store.finish_limited, ending)
        return is_mine or (self.is_unsure and bool(await self._recorded([ending.fence])))

    async def put_back(self, ending: Ending) -> bool:
        """A job that goes back."""
        is_mine = await self._database.run(putting_back.put_back, ending)
        return is_mine or await self.was_put_back(ending)

    async def pause_and_put_back(self, ending: Ending, *, queue: str, channel: str) -> tuple[bool, bool]:
        """The same, and its queue is paused; the second: whether that begins with it. False: see `was_put_back`."""
        return await self._database.run(putting_back.pause_and_put_back, ending, queue=queue, channel=channel)

    async def was_put_back(self, ending: Ending) -> bool:
        """Whether a try before has put it back."""
        return self.is_unsure and await self._database.run(recorded.was_put_back, ending)

    async def _recorded(self, fences: Sequence[Fence]) -> set[int]:
        return await self._database.run(recorded.recorded, fences)
