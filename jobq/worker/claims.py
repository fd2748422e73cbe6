"""One claim at a time, under the worker's identity; whatever is unclear about one is cleared up before the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

import anyio

from jobq.database import Database
from jobq.faults import is_connection_failure, sqlstate
from jobq.model import Claimed
from jobq.store.claiming import Claim
from jobq.worker.completer import Completer
from jobq.worker.groups import Groups
from jobq.worker.lease import Lease
from jobq.worker.membership import Membership
from jobq.worker.runner import Runner
from jobq.worker.stats import Counters

RECORD_SECONDS = 5.0


class Claims:
    """It owns the worker's identity: with the lease lost, it joins anew before it claims."""

    def __init__(
        self,
        database: Database,
        counters: Counters,
        lease: Lease,
        groups: Groups,
        membership: Membership,
        runner: Runner,
        completer: Completer,
    ) -> None:
        self.is_unclear = False  # a claim's answer was lost, and nothing has been reconciled since
        self._database = database
        self._counters = counters
        self._lease = lease
        self._groups = groups
        self._membership = membership
        self._runner = runner
        self._completer = completer
        self._again_at: float | None = None  # once more, a lease after a reconcile

    @property
    def may_have_unknown(self) -> bool:
        """Jobs may carry our id that we do not know of: a claim that was not answered may come late."""
        return self.is_unclear or self._again_at is not None

    @property
    def are_possible(self) -> bool:
        """Whether this is a worker: not between the loss of its lease and joining anew."""
        return self._lease.worker_id is not None

    async def clear_up(self) -> None:
        """Join anew if the lease is lost, and give back what carries our id and is not held."""
        if self._lease.worker_id is None:
            await self._join_anew()
        self.is_unclear |= self._completer.take_unrecorded()
        if self.is_unclear or (self._again_at is not None and monotonic() >= self._again_at):
            await self._reconcile()

    async def take(self, function: Callable[..., Claim], asked: Sequence[Any], **limits: Any) -> Claim | None:
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

    def start(self, jobs: Sequence[Claimed]) -> None:
        """Run what was claimed, in this order."""
        self._counters.claims += 1
        self._counters.claimed += len(jobs)
        self._runner.receive(jobs)

    async def _join_anew(self) -> None:
        """What ended under the old id is recorded first, if that is still possible: what is given back runs again."""
        with anyio.move_on_after(RECORD_SECONDS):
            await self._completer.drained()
        await self._membership.join()
        self.is_unclear = False
        self._groups.forget()

    async def _reconcile(self) -> None:
        was_unclear = self.is_unclear
        positions = await self._membership.reconcile()
        self.is_unclear = False
        self._again_at = monotonic() + self._lease.length.total_seconds() if was_unclear else None
        self._counters.reconciled += len(positions)
        for position in positions:
            self._groups.set_back(position)
