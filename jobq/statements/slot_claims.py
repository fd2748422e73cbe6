"""Taking the jobs of limited queues, each with a slot, in one statement (DESIGN.md, Limited queues)."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa

from jobq.statements.binds import ONE, SMALLINTS, TEXTS, ZERO, param
from jobq.statements.claim import CLAIMED, headed, is_due, may_run
from jobq.statements.limits import limit_of
from jobq.tables import TIMESTAMP, jobs, queues, slots, workers

PRIORITIES = sa.cast(sa.literal_column("'{0,1,2,3}'"), SMALLINTS)
NOW = sa.func.now()


@cache
def claim_in_order() -> sa.Executable:
    """Take the free slots of FIFO queues and the head of each queue, or nothing of it. See `_claim`."""
    return _claim(in_order=True)


@cache
def claim_some() -> sa.Executable:
    """Take free slots of queues with a limit, and as many jobs of theirs that nobody holds locked. See `_claim`."""
    return _claim(in_order=False)


def _claim(*, in_order: bool) -> sa.Executable:
    """`headed` rows, of `now` and `next_at`.

    `next_at`: when, of these queues, the next slot or the next paused queue is ready, if one is.
    Binds: worker_id, kinds, queues (in the order of their turn), most (jobs; not "n", which is a column).
    """
    free = _free_slots(in_order=in_order)
    me = param("worker_id", sa.BigInteger)
    alive = sa.select(workers.c.id).where(workers.c.id == me).with_for_update(read=True, key_share=True)
    chosen = (_heads if in_order else _next_jobs)(free)
    claimed = (
        sa.update(jobs)
        .where(
            jobs.c.id == sa.any_(sa.func.array(chosen.scalar_subquery())),
            jobs.c.worker_id.is_(None),
            me == alive.scalar_subquery(),
        )
        .values(worker_id=me, attempt=jobs.c.attempt + ONE, attempted_at=NOW)
        .returning(*CLAIMED)
        .cte("claimed")
    )
    taken = _taken(free, claimed, me)
    return headed(taken, NOW.label("now"), _next_at().label("next_at"))


def _free_slots(*, in_order: bool) -> sa.CTE:
    """Free slots of queues that have a due job, locked; what nobody needs is left unlocked, which is a write too.

    After a limit was lowered, no slot of its queue is free as long as one beyond it is in use.
    """
    asked = sa.func.unnest(param("queues", TEXTS)).table_valued(sa.column("queue", sa.Text), with_ordinality="place")
    asked = asked.render_derived(name="asked")
    beyond = slots.alias("beyond")
    in_use = sa.exists().where(
        beyond.c.queue == queues.c.name, beyond.c.worker_id.is_not(None), beyond.c.n > limit_of()
    )
    wanted = sa.exists().where(jobs.c.queue == queues.c.name, jobs.c.priority == sa.any_(PRIORITIES), *is_due(jobs))
    if not in_order:
        wanted = wanted.where(jobs.c.kind == sa.any_(param("kinds", TEXTS)))
    found = asked.join(queues, queues.c.name == asked.c.queue).join(slots, slots.c.queue == queues.c.name)
    return (
        sa.select(slots.c.queue, slots.c.n)
        .select_from(found)
        .where(
            queues.c.fifo.is_(sa.true()) if in_order else queues.c.fifo.is_not(sa.true()),
            sa.or_(queues.c.paused_until.is_(None), queues.c.paused_until <= NOW),
            slots.c.worker_id.is_(None),
            slots.c.ready_at <= NOW,
            slots.c.n <= limit_of(),
            ~in_use,
            wanted,
        )
        .order_by(asked.c.place, slots.c.n)
        .limit(param("most", sa.Integer))
        .with_for_update(of=slots, skip_locked=True)
        .cte("free")
    )


def _heads(free: sa.CTE) -> sa.Select[Any]:
    """The head of each queue, if it can be had: chosen first, then looked at, so that nothing passes it.

    A head that runs already is that of a queue which was unlimited a moment ago; of an unknown kind: a worker that
    knows it will take it; locked by somebody else: the next look may find it.
    """
    level = _levels()
    first = jobs.alias("first")
    in_lane = (
        sa.select(first.c.id, first.c.run_at, first.c.kind)
        .where(first.c.queue == free.c.queue, first.c.priority == level.c.priority, *may_run(first))
        .order_by(first.c.run_at, first.c.id + ZERO)
        .limit(ONE)
        .correlate(free, level)
        .lateral("in_lane")
    )
    head = (
        sa.select(in_lane.c.id, in_lane.c.kind)
        .select_from(level.join(in_lane, sa.true()))
        .order_by(level.c.priority)
        .limit(ONE)
        .correlate(free)
        .lateral("head")
    )
    known = head.c.kind == sa.any_(param("kinds", TEXTS))
    ids = sa.select(head.c.id).select_from(free.join(head, sa.true())).where(known)
    one = jobs.alias("one")
    chosen = one.c.id == sa.any_(sa.func.array(ids.scalar_subquery()))
    return sa.select(one.c.id).where(chosen, *is_due(one)).with_for_update(skip_locked=True)


def _next_jobs(free: sa.CTE) -> sa.Select[Any]:
    """The next jobs of each queue, as many as it has free slots, locked; what others hold locked is passed by."""
    wanted = sa.select(free.c.queue, sa.func.count().label("n")).group_by(free.c.queue).cte("wanted")
    level = _levels()
    one = jobs.alias("one")
    lane = (
        sa.select(one.c.id, one.c.run_at)
        .where(
            one.c.queue == wanted.c.queue,
            one.c.priority == level.c.priority,
            one.c.kind == sa.any_(param("kinds", TEXTS)),
            *is_due(one),
        )
        .order_by(one.c.run_at, one.c.id + ZERO)
        .limit(wanted.c.n)
        .with_for_update(skip_locked=True)
        .correlate(wanted, level)
        .lateral("lane")
    )
    due = (
        sa.select(lane.c.id)
        .select_from(level.join(lane, sa.true()))
        .order_by(level.c.priority, lane.c.run_at, lane.c.id)
        .limit(wanted.c.n)
        .correlate(wanted)
        .lateral("due")
    )
    return sa.select(due.c.id).select_from(wanted.join(due, sa.true()))


def _levels() -> Any:
    """The priorities: an index range each, so that jobs scheduled for later are not walked through."""
    return sa.func.unnest(PRIORITIES).table_valued("priority").render_derived(name="level")


def _taken(free: sa.CTE, claimed: sa.CTE, me: sa.ColumnElement[int]) -> sa.CTE:
    """Each claimed job with a free slot of its queue, which is its own from now on."""

    def numbered(rows: sa.CTE, order: sa.ColumnElement[Any]) -> sa.Subquery:
        nth = sa.func.row_number().over(partition_by=rows.c.queue, order_by=order).label("nth")
        return sa.select(rows, nth).subquery(f"numbered_{rows.name}")

    slot, job = numbered(free, free.c.n), numbered(claimed, claimed.c.id)
    return (
        sa.update(slots)
        .where(
            slots.c.queue == slot.c.queue,
            slots.c.n == slot.c.n,
            slot.c.queue == job.c.queue,
            slot.c.nth == job.c.nth,
        )
        .values(worker_id=me, job_id=job.c.id, attempt=job.c.attempt)
        .returning(*[job.c[name] for name in claimed.c.keys()], slots.c.n.label("slot"))  # noqa: SIM118
        .cte("taken")
    )


def _next_at() -> sa.ColumnElement[Any]:
    """When the next slot, or the next paused queue, of those asked for is ready."""
    mine = sa.any_(param("queues", TEXTS))
    slot = sa.select(sa.func.min(slots.c.ready_at)).where(
        slots.c.queue == mine, slots.c.worker_id.is_(None), slots.c.ready_at > NOW
    )
    paused = sa.select(sa.func.min(queues.c.paused_until)).where(queues.c.name == mine, queues.c.paused_until > NOW)
    return sa.func.least(slot.scalar_subquery(), paused.scalar_subquery(), type_=TIMESTAMP)
