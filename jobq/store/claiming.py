"""Claims, and what a worker reads to know where to claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from jobq.model import Claimed
from jobq.statements import claim as statements


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
    """What a claim gave: `now` is the time of the statement. Jobs come in the order of the lanes asked for."""

    now: datetime
    jobs: tuple[Claimed, ...]


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
    return Claim(rows[0].now, tuple(claimed))


def _claimed(row: sa.Row[Any]) -> Claimed:
    values = dict(row._mapping)
    now = values.pop("now")
    return Claimed(**values, waited=now - max(row.run_at, row.created_at))


@dataclass(frozen=True, slots=True)
class Survey:
    """What there is to serve: queues with open jobs, the weights that the database has, how many workers live."""

    queues: frozenset[str]
    weights: dict[str, int]
    live_workers: int


def survey(connection: sa.Connection) -> Survey:
    """Three short reads, each by an index or of a small table."""
    queues = frozenset(connection.execute(statements.queues_with_jobs()).scalars())
    weights = {row.name: row.weight for row in connection.execute(statements.queue_weights())}
    return Survey(queues, weights, connection.execute(statements.live_workers()).scalar_one())
