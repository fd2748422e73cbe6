"""What runs now, without reading all that waits: claims take from the front of a lane, so what runs is there."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from jobq.statements.binds import ONE, param
from jobq.statements.stats import lanes
from jobq.tables import jobs, kinds, leader, workers

_NOW = sa.func.now()
OF_META = ("progress", "timeout")
PLAIN = ("id", "queue", "kind", "priority", "attempt", "worker_id", "attempted_at", "run_at")


@cache
def running() -> sa.Executable:
    """The jobs of a queue that have run longest, each with two counts, and as JSON text its progress and own timeout.

    The first `shown` by `place`, and besides them the first of each worker. running_here: how
    many run in the queue, or in all others (`is_here` tells which); running_there: how many the job's worker runs, of
    all queues. Binds: most, the due jobs of each lane that are read; only_queue, NULL for all; shown.
    """
    front = _front()
    longest, there = (front.c.attempted_at, front.c.id), front.c.worker_id
    ranked = sa.select(
        *front.c,
        sa.func.row_number().over(partition_by=front.c.is_here, order_by=longest).label("place"),
        sa.func.count().over(partition_by=front.c.is_here).label("running_here"),
        sa.func.row_number().over(partition_by=there, order_by=longest).label("place_there"),
        sa.func.count().over(partition_by=there).label("running_there"),
    ).subquery("ranked")
    is_shown = sa.and_(ranked.c.is_here, ranked.c.place <= param("shown", sa.Integer))
    found = sa.select(*ranked.c, kinds.c.timeout.label("timeout_of_kind"), _NOW.label("read_at"))
    found = found.outerjoin_from(ranked, kinds, kinds.c.kind == ranked.c.kind)
    return found.where(sa.or_(is_shown, ranked.c.place_there == ONE)).order_by(ranked.c.place)


@cache
def members() -> sa.Executable:
    """Every worker that has a row, the oldest first, without what it runs; `heard_at`: of its last heartbeat."""
    in_office = sa.exists().where(leader.c.worker_id == workers.c.id, leader.c.lease_until > _NOW)
    told = [
        (workers.c.lease_until > _NOW).label("alive"),
        in_office.label("is_leader"),
        (workers.c.lease_until - workers.c.lease).label("heard_at"),
        _NOW.label("read_at"),
    ]
    return sa.select(*workers.c, *told).order_by(workers.c.started_at, workers.c.id)


def _front() -> sa.Subquery:
    """The running ones among the first `most` due jobs of each lane."""
    lane, only = lanes(), param("only_queue", sa.Text)
    here = (jobs.c.queue == lane.c.queue, jobs.c.priority == lane.c.priority, jobs.c.run_at <= _NOW)
    some = sa.select(*[jobs.c[name] for name in PLAIN], jobs.c.meta).where(*here)
    first = some.order_by(jobs.c.run_at).limit(param("most", sa.Integer)).correlate(lane).subquery("first")
    told = [*(first.c[name] for name in PLAIN), *(_said(first.c.meta, name) for name in OF_META)]
    runs = sa.select(*told).where(first.c.worker_id.is_not(None)).correlate(lane).lateral("runs")
    is_here = sa.or_(only.is_(None), lane.c.queue == only).label("is_here")
    return sa.select(*runs.c, is_here).select_from(lane.join(runs, sa.true())).subquery("front")


def _said(meta: sa.ColumnElement[Any], name: str) -> sa.Label[str]:
    said = meta.op("->", return_type=JSONB)(sa.literal_column(f"'{name}'", sa.Text))
    return sa.cast(said, sa.Text).label(name)
