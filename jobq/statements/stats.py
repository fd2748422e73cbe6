"""Statements that count. What alerts need is exact and cheap, or bounded; history is one scan of finished_jobs."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from jobq.statements.binds import param
from jobq.tables import TIMESTAMP, finished_jobs, jobs, kinds, queues, workers

LOWEST_PRIORITY = 3
MINUTE = sa.literal_column("interval '1 minute'", sa.Interval)
HOUR = sa.literal_column("interval '1 hour'", sa.Interval)
_DUE = jobs.c.run_at <= sa.func.now()
_WAITS = jobs.c.worker_id.is_(None)


@cache
def waiting() -> sa.Executable:
    """Per queue with open jobs: ready and scheduled, both counted up to `most` a lane, and the oldest due run_at.

    Walks the lane index alone: its queues by a loose scan, then each lane up to the bound. Bind: most.
    """
    names = _open_queues()
    lane = sa.func.generate_series(0, LOWEST_PRIORITY).table_valued("priority").render_derived(name="lane")
    here = sa.and_(jobs.c.queue == names.c.queue, jobs.c.priority == lane.c.priority, _WAITS)
    ready = _bounded(here, _DUE, lane, names)
    scheduled = _bounded(here, ~_DUE, lane, names)
    oldest = (
        sa.select(jobs.c.run_at).where(here, _DUE).order_by(jobs.c.run_at).limit(1).correlate(names, lane)
    ).scalar_subquery()
    numbers = [sa.func.sum(ready).label("ready"), sa.func.sum(scheduled).label("scheduled")]
    found = sa.select(names.c.queue, *numbers, sa.func.min(oldest).label("oldest"))
    return found.select_from(names.join(lane, sa.true())).where(names.c.queue.is_not(None)).group_by(names.c.queue)


@cache
def held() -> sa.Executable:
    """Per queue and kind: running jobs, and waiting ones of kinds that no live worker knows; one scan of `jobs`."""
    live = sa.select(sa.func.unnest(workers.c.kinds)).where(workers.c.lease_until > sa.func.now()).scalar_subquery()
    known = jobs.c.kind == sa.any_(sa.cast(sa.func.array(live), ARRAY(sa.Text)))
    running = sa.func.count().filter(~_WAITS).label("running")
    unknown = sa.func.count().filter(_WAITS).label("unknown")
    counted = sa.select(jobs.c.queue, jobs.c.kind, running, unknown).where(sa.or_(~_WAITS, ~known))
    return counted.group_by(jobs.c.queue, jobs.c.kind)


@cache
def ended() -> sa.Executable:
    """Per queue and state: what is kept, and what of it finished in the last minute and in the last hour."""
    minute = sa.func.count().filter(_within(MINUTE)).label("last_minute")
    hour = sa.func.count().filter(_within(HOUR)).label("last_hour")
    counted = sa.select(finished_jobs.c.queue, finished_jobs.c.state, sa.func.count().label("kept"), minute, hour)
    return counted.group_by(finished_jobs.c.queue, finished_jobs.c.state)


@cache
def durations() -> sa.Executable:
    """Per kind: how many ended by running in the last hour, and how long their last attempts took, in seconds."""
    took = sa.extract("epoch", finished_jobs.c.finished_at - finished_jobs.c.attempted_at)
    spread = [
        sa.func.percentile_cont(sa.literal_column("0.5")).within_group(took).label("p50"),
        sa.func.percentile_cont(sa.literal_column("0.95")).within_group(took).label("p95"),
        sa.cast(sa.func.max(took), sa.Double).label("longest"),
    ]
    ran = sa.and_(finished_jobs.c.state.in_(["done", "dead"]), finished_jobs.c.attempted_at.is_not(None))
    counted = sa.select(finished_jobs.c.kind, sa.func.count().label("finished"), *spread).where(ran, _within(HOUR))
    return counted.group_by(finished_jobs.c.kind).order_by(finished_jobs.c.kind)


@cache
def known_queues() -> sa.Executable:
    """The queues that workers declared or that a pause is set for, so that an idle one is shown too."""
    paused = queues.c.paused_until > sa.func.now()
    until = sa.case((paused, queues.c.paused_until)).label("paused_until")
    declared = sa.select(queues.c.name.label("queue"), until, sa.case((paused, queues.c.pause_reason)).label("reason"))
    return sa.union_all(declared, sa.select(kinds.c.queue, sa.cast(sa.null(), TIMESTAMP), sa.cast(sa.null(), sa.Text)))


@cache
def queue_names() -> sa.Executable:
    """Every queue that there is a trace of, each once; reads all of finished_jobs, to answer for a mistyped name."""
    names = _open_queues()
    waiting_in = sa.select(names.c.queue).where(names.c.queue.is_not(None))
    return sa.union(waiting_in, sa.select(queues.c.name), sa.select(kinds.c.queue), sa.select(finished_jobs.c.queue))


@cache
def clock() -> sa.Executable:
    """The database's time, and how many workers are alive by it."""
    alive = sa.select(sa.func.count()).select_from(workers).where(workers.c.lease_until > sa.func.now())
    return sa.select(sa.func.now().label("at"), alive.scalar_subquery().label("live_workers"))


def _open_queues() -> sa.CTE:
    """The distinct queues of `jobs` by one index probe each, plus a NULL at the end."""
    names = sa.select(sa.func.min(jobs.c.queue).label("queue")).cte("names", recursive=True)
    following = sa.select(sa.func.min(jobs.c.queue)).where(jobs.c.queue > names.c.queue).scalar_subquery()
    return names.union_all(sa.select(following).where(names.c.queue.is_not(None)))


def _bounded(here: Any, due: Any, *outer: Any) -> sa.ScalarSelect[int]:
    some: sa.Select[Any] = (
        sa.select(sa.literal_column("1")).select_from(jobs).where(here, due).limit(param("most", sa.Integer))
    )
    return sa.select(sa.func.count()).select_from(some.correlate(*outer).subquery()).correlate(*outer).scalar_subquery()


def _within(span: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    return finished_jobs.c.finished_at > sa.func.now() - span
