"""Claims, and what a worker reads to know where to claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

import sqlalchemy as sa

from jobq.model import Claimed
from jobq.statements import claim as statements
from jobq.statements import slot_claims
from jobq.statements import survey as survey_statements
from jobq.store.rows import OneStatement, Query, Rows

HEAD = 2  # columns of the first row of a claim, NULL in the others; behind them as in statements.CLAIMED
SLOT = HEAD + len(statements.CLAIMED)
_NEW = tuple.__new__  # a named tuple's own constructor takes three times as long
_TURN = attrgetter("priority", "run_at", "id")


class LaneAsk(NamedTuple):
    """One lane of a claim: up to `limit` jobs behind the cursor (run_at, id)."""

    queue: str
    priority: int
    run_at: datetime
    id: int
    limit: int


@dataclass(frozen=True, slots=True)
class Claim:
    """What a claim gave: `now` is the time of the statement.

    Jobs come in the order in which they start, whatever their queues: by priority, run_at and id. What ends one after
    the other then stood side by side in the table, and a page is visited once for many of them.

    `next_at`: when a queue that is paused, or a slot that waits, is ready; None: there is none.
    """

    now: datetime
    jobs: tuple[Claimed, ...]
    next_at: datetime | None = None


@OneStatement
def claim(lanes: Sequence[LaneAsk], *, worker_id: int, kinds: Sequence[str], most: int) -> Query[Claim]:
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

    def read(answer: Rows) -> Claim:
        head, *rows = answer
        now, next_at = head[:HEAD]
        ours = (worker_id, now, None, False)
        jobs = [_NEW(Claimed, row[HEAD:] + ours) for row in rows]
        return Claim(now, tuple(sorted(jobs, key=_TURN)), next_at)

    return Query(statements.claim(), binds, read)


@OneStatement
def claim_slots(
    queues: Sequence[str], *, worker_id: int, kinds: Sequence[str], most: int, in_order: bool
) -> Query[Claim]:
    """Take up to `most` jobs of limited queues, each with a slot; queues come in their turn. In autocommit.

    `in_order`: only of FIFO queues, the head of each; else only of the others.
    """
    statement = slot_claims.claim_in_order() if in_order else slot_claims.claim_some()
    binds = {"worker_id": worker_id, "kinds": list(kinds), "queues": list(queues), "most": most}

    def read(answer: Rows) -> Claim:
        head, *rows = answer
        now, next_at = head[:HEAD]
        jobs = [_NEW(Claimed, (*row[HEAD:SLOT], worker_id, now, row[SLOT], in_order)) for row in rows]
        jobs.sort(key=lambda job: (queues.index(job.queue), job.priority, job.run_at, job.id))
        return Claim(now, tuple(jobs), next_at)

    return Query(statement, binds, read)


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
    """One look; it also makes the slots that a new limit asks for. In autocommit."""
    rows = connection.execute(survey_statements.survey()).all()
    found = [row for row in rows if row.name is not None]
    settings = [QueueRow(row.name, row.weight, row.fifo, row.concurrency) for row in found if row.is_set]
    return Survey(frozenset(row.name for row in found if row.has_jobs), tuple(settings), rows[0].live_workers)
