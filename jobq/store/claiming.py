"""Claims, and what a worker reads to know where to claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from jobq.model import Claimed
from jobq.statements import claim as statements
from jobq.statements import slot_claims
from jobq.statements import slots as slot_statements


@dataclass(frozen=True, slots=True)
class LaneAsk:
    """One lane of a claim: up to `limit` jobs behind the cursor (run_at, id)."""

    queue: str
    priority: int
    run_at: datetime
    id: int
    limit: int


@dataclass(frozen=True, slots=True)
class Claim:
    """What a claim gave: `now` is the time of the statement. Jobs come in the order of the lanes asked for.

    `next_at`: when a queue that is paused, or a slot that waits, is ready; None: there is none.
    """

    now: datetime
    jobs: tuple[Claimed, ...]
    next_at: datetime | None = None


def claim(
    connection: sa.Connection, lanes: Sequence[LaneAsk], *, worker_id: int, kinds: Sequence[str], most: int
) -> Claim:
    """Take up to `most` due jobs. In autocommit: the jobs are ours when this returns."""
    binds = {
        "worker_id": worker_id,
        "kinds": list(kinds),
        "n": most,
        "queues": [lane.queue for lane in lanes],
        "priorities": [lane.priority for lane in lanes],
        "run_ats": [lane.run_at for lane in lanes],
        "ids": [lane.id for lane in lanes],
        "limits": [lane.limit for lane in lanes],
    }
    rows = connection.execute(statements.claim(), binds).all()
    order = {(lane.queue, lane.priority): n for n, lane in enumerate(lanes)}
    claimed = [_claimed(row) for row in rows if row.id is not None]
    claimed.sort(key=lambda job: (order[job.lane], job.run_at, job.id))
    return Claim(rows[0].now, tuple(claimed), rows[0].reopens_at)


def claim_slots(
    connection: sa.Connection,
    queues: Sequence[str],
    *,
    worker_id: int,
    kinds: Sequence[str],
    most: int,
    in_order: bool,
) -> Claim:
    """Take up to `most` jobs of limited queues, each with a slot; queues come in their turn. In autocommit.

    `in_order`: only of FIFO queues, the head of each; else only of the others.
    """
    statement = slot_claims.claim_in_order() if in_order else slot_claims.claim_some()
    binds = {"worker_id": worker_id, "kinds": list(kinds), "queues": list(queues), "most": most}
    rows = connection.execute(statement, binds).all()
    claimed = [_claimed(row, in_order=in_order) for row in rows if row.id is not None]
    claimed.sort(key=lambda job: (queues.index(job.queue), job.priority, job.run_at, job.id))
    return Claim(rows[0].now, tuple(claimed), rows[0].next_at)


def _claimed(row: sa.Row[Any], **others: Any) -> Claimed:
    values = dict(row._mapping)
    now = values.pop("now")
    values.pop("reopens_at" if "reopens_at" in values else "next_at")
    return Claimed(**values, **others, waited=now - max(row.run_at, row.created_at))


@dataclass(frozen=True, slots=True)
class QueueRow:
    """What the database says of a queue; None in weight or fifo: nobody has said anything of weight or limit."""

    name: str
    weight: int | None
    fifo: bool | None
    concurrency: int | None

    @property
    def is_limited(self) -> bool:
        return bool(self.fifo) or self.concurrency is not None


@dataclass(frozen=True, slots=True)
class Survey:
    """What there is to serve: queues with open jobs, what the database says of queues, how many workers live."""

    queues: frozenset[str]
    settings: tuple[QueueRow, ...]
    live_workers: int

    @property
    def weights(self) -> dict[str, int]:
        """Those that are set."""
        return {row.name: row.weight for row in self.settings if row.weight is not None}


def survey(connection: sa.Connection) -> Survey:
    """Short reads, each by an index or of a small table; and the slots that a new limit asks for are made."""
    connection.execute(slot_statements.make_slots())
    queues = frozenset(connection.execute(statements.queues_with_jobs()).scalars())
    settings = tuple(QueueRow(*row) for row in connection.execute(statements.queue_settings()))
    return Survey(queues, settings, connection.execute(statements.live_workers()).scalar_one())
