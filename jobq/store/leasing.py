"""A worker's lease: register, beat, reconcile, leave."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from jobq.handlers import Handler
from jobq.model import Position
from jobq.statements import leader, recorded
from jobq.statements import lease as statements
from jobq.statements import queues as queue_statements
from jobq.statements import slots as slot_statements
from jobq.store.ending import Fence, held_binds
from jobq.store.putting_back import give_back, give_back_unknown


@dataclass(frozen=True, slots=True)
class Registration:
    """A worker as its row says it."""

    id: int
    name: str
    hostname: str
    pid: int
    version: str
    queues: Sequence[str] | None
    kinds: Sequence[str]
    concurrency: int
    lease: timedelta
    schedules: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """A handler as its row in `kinds` says it."""

    kind: str
    queue: str
    max_attempts: int
    timeout: timedelta | None
    keep: timedelta | None
    on_interrupt: str
    priority: int = 1
    unique_names: str | None = None  # what derives a unique key: as the bind of that name in statements/enqueue.py
    secrets: str | None = None  # which arguments are not to be shown: by commas, None for none

    @classmethod
    def of(cls, handler: Handler[..., Any]) -> Published:
        """What the code says of a handler."""
        settings = handler.settings
        return cls(
            kind=handler.kind,
            queue=settings.queue,
            max_attempts=settings.max_attempts,
            timeout=settings.timeout,
            keep=settings.keep,
            on_interrupt=settings.on_interrupt,
            priority=settings.priority,
            unique_names=settings.as_options().unique_names,
            secrets=",".join(sorted(handler.secrets)) or None,
        )


def register(connection: sa.Connection, registration: Registration) -> None:
    """Insert the worker's row: from now on it may claim."""
    connection.execute(
        statements.register(),
        {
            "id": registration.id,
            "name": registration.name,
            "hostname": registration.hostname,
            "pid": registration.pid,
            "version": registration.version,
            "queues": None if registration.queues is None else list(registration.queues),
            "kinds": list(registration.kinds),
            "schedules": list(registration.schedules),
            "concurrency": registration.concurrency,
            "lease_seconds": registration.lease.total_seconds(),
        },
    )


@dataclass(frozen=True, slots=True)
class PublishedQueue:
    """A queue as its row in `queues` says it where nobody has said anything yet. `fifo` None: no limit."""

    name: str
    weight: int
    fifo: bool | None = None
    concurrency: int | None = None


def publish(connection: sa.Connection, kinds: Iterable[Published], queues: Iterable[PublishedQueue]) -> None:
    """Write what the code says of its kinds, and of its queues where the database says nothing yet.

    In the order of the names, so that workers that start together do not wait for each other in a circle.
    """
    for kind in sorted(kinds, key=lambda one: one.kind):
        binds = {name: getattr(kind, name) for name in Published.__slots__}
        connection.execute(statements.publish_kind(), binds)
    for queue in sorted(queues, key=lambda one: one.name):
        binds = {name: getattr(queue, name) for name in PublishedQueue.__slots__}
        connection.execute(queue_statements.publish_queue(), binds)
    connection.execute(slot_statements.make_slots())


def beat(connection: sa.Connection, worker_id: int, *, left_behind: int = 0) -> bool:
    """Extend the lease, and say how many handlers could not be stopped; False when this worker was declared dead."""
    return connection.execute(statements.beat(), {"me": worker_id, "left_behind": left_behind}).first() is not None


def lost_of(connection: sa.Connection, held: Iterable[Fence]) -> set[Fence]:
    """Which held jobs of one worker are no longer its own: cancelled, retried by hand, rescued."""
    ordered = sorted(held, key=lambda fence: fence.id)
    if not ordered:
        return set()
    mine = set(connection.execute(statements.still_held(), held_binds(ordered)).scalars())
    return {fence for fence in ordered if fence.id not in mine}


def taken_from(connection: sa.Connection, held: Iterable[Fence]) -> dict[Fence, bool]:
    """The held jobs of one worker that are no longer its own, and whether each was cancelled by hand."""
    lost = sorted(lost_of(connection, held), key=lambda fence: fence.id)
    if not lost:
        return {}
    cancelled = set(connection.execute(recorded.cancelled(), held_binds(lost)).scalars())
    return {fence: fence.id in cancelled for fence in lost}


def reconcile(
    connection: sa.Connection,
    *,
    worker_id: int,
    held: Iterable[Fence],
    channel: str | None,
    kept_slots: Iterable[int] = (),
) -> list[Position]:
    """Give back what carries this worker's id and is unknown to it. In one transaction, on a connection of its own.

    The lock on the worker's row waits for a claim that is still in flight. `kept_slots`: jobs whose end is written, but
    whose slot waits for their handler to end.
    """
    known = list(held)
    connection.execute(statements.lock_own_row(), {"me": worker_id})
    given = give_back_unknown(connection, worker_id=worker_id, held=known, channel=channel)
    kept = [*(fence.id for fence in known), *kept_slots]
    connection.execute(slot_statements.free_unknown(), {"me": worker_id, "ids": kept})
    return given


def leave(
    connection: sa.Connection,
    *,
    worker_id: int,
    held: Iterable[Fence] | None,
    channel: str | None,
    kept_slots: Iterable[int] = (),
    wait: timedelta = timedelta(0),
) -> int:
    """Delete the worker's row, then give back what it holds; returns how many jobs. In one transaction.

    In this order: the delete waits for a claim in flight and none can follow. `held` None: a claim's answer was not
    read, so all that carries the id goes back. Does not wait for a locked table: a worker on its way out has a second.
    The slots of `kept_slots`, jobs whose handler could not be stopped, are ready after `wait`: the process ends soon.
    """
    connection.execute(statements.leave_soon())
    connection.execute(statements.leave(), {"me": worker_id})
    if held is None:
        given = len(give_back_unknown(connection, worker_id=worker_id, held=(), channel=channel))
    else:
        given = len(give_back(connection, held, channel=channel))
    freed = {"me": worker_id, "kept": list(kept_slots), "wait": wait.total_seconds()}
    connection.execute(slot_statements.free_slots(), freed)
    connection.execute(leader.resign(), {"me": worker_id})
    return given


def capacity(connection: sa.Connection) -> tuple[int, int]:
    """How many connections the server allows to ordinary users, and how many are in use."""
    row = connection.execute(statements.capacity()).one()
    return row.most - row.reserved, row.used
