"""What queues are set to: published by code, set by hand, paused and resumed."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import Insert

from jobq.statements.binds import param, seconds
from jobq.statements.limits import IS_PAUSED
from jobq.tables import TIMESTAMP, queues, slots

LIMIT = ("fifo", "concurrency")


@cache
def publish_queue() -> sa.Executable:
    """A queue's settings as the code says them, each where nobody has said anything yet.

    Binds: name, weight, fifo (NULL: the code knows no limit), concurrency.
    """
    insert = postgresql.insert(queues).values(**_binds("name", "weight", *LIMIT))
    new = insert.excluded
    unlimited = queues.c.fifo.is_(None)
    filled: dict[str, Any] = {"weight": sa.func.coalesce(queues.c.weight, new.weight)}
    filled |= {name: sa.case((unlimited, new[name]), else_=queues.c[name]) for name in LIMIT}
    differs = sa.or_(queues.c.weight.is_(None), sa.and_(unlimited, new.fifo.is_not(None)))
    return insert.on_conflict_do_update(index_elements=[queues.c.name], set_=filled, where=differs)


@cache
def set_queue(*, weight: bool, limit: bool) -> sa.Executable:
    """Set a queue's weight, limit, or both. Binds: name; weight; fifo, concurrency."""
    names = [*(["weight"] if weight else []), *(LIMIT if limit else [])]
    insert = postgresql.insert(queues).values(**_binds("name", *names))
    chosen: dict[str, Any] = {name: insert.excluded[name] for name in names}
    return insert.on_conflict_do_update(index_elements=[queues.c.name], set_=chosen)


@cache
def read_queues() -> sa.Executable:
    """Every queue that is set, by name: its settings, its pause, and how many of its slots are taken."""
    taken = sa.select(sa.func.count()).where(slots.c.queue == queues.c.name, slots.c.worker_id.is_not(None))
    until, why = (sa.case((IS_PAUSED, queues.c[name])).label(name) for name in ("paused_until", "pause_reason"))
    plain = [queues.c[name] for name in ("name", "weight", *LIMIT)]
    return sa.select(*plain, until, why, taken.scalar_subquery().label("taken")).order_by(queues.c.name)


def pause_for() -> sa.Insert:
    """Pause a queue for a while; a pause that lasts longer stays. Returns `began`: it was not paused before.

    Binds: the_queue, pause_seconds, reason.
    """
    return _pause(sa.func.now() + seconds("pause_seconds"), longer_stays=True)


@cache
def pause_until() -> sa.Executable:
    """Pause a queue for so long, whatever was before. Binds: the_queue, reason, pause_seconds; NULL: until `last`."""
    last = param("last", TIMESTAMP)
    return _pause(sa.func.coalesce(sa.func.now() + seconds("pause_seconds"), last), longer_stays=False)


@cache
def resume() -> sa.Executable:
    """End a queue's pause; returns its name if there was one. Bind: the_queue."""
    paused = sa.and_(queues.c.name == param("the_queue", sa.Text), IS_PAUSED)
    ended: dict[str, Any] = {name: sa.null() for name in ("paused_at", "paused_until", "pause_reason")}
    return sa.update(queues).where(paused).values(**ended).returning(queues.c.name)


def _pause(until: sa.ColumnElement[Any], *, longer_stays: bool) -> sa.Insert:
    """`paused_at` is when a pause began: it stays while one is made longer."""
    insert: Insert = postgresql.insert(queues).values(
        name=param("the_queue", sa.Text),
        paused_at=sa.func.now(),
        paused_until=until,
        pause_reason=param("reason", sa.Text),
    )
    new = insert.excluded
    goes_on = queues.c.paused_until > new.paused_at
    changed: dict[str, Any] = {name: new[name] for name in ("paused_until", "pause_reason")}
    if longer_stays:
        longer = sa.and_(goes_on, queues.c.paused_until >= new.paused_until)
        changed = {name: sa.case((longer, queues.c[name]), else_=value) for name, value in changed.items()}
    changed["paused_at"] = sa.case((goes_on, queues.c.paused_at), else_=new.paused_at)
    written = insert.on_conflict_do_update(index_elements=[queues.c.name], set_=changed)
    return written.returning(queues.c.paused_until, (queues.c.paused_at == sa.func.now()).label("began"))


def _binds(*names: str) -> dict[str, Any]:
    return {name: param(name, queues.c[name].type) for name in names}
