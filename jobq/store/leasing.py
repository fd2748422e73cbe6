"""A worker's lease: register, beat, reconcile, leave."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from jobq.model import Position
from jobq.statements import lease as statements
from jobq.store.ending import Fence, give_back, give_back_unknown


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


@dataclass(frozen=True, slots=True)
class Published:
    """A handler as its row in `kinds` says it."""

    kind: str
    queue: str
    max_attempts: int
    timeout: timedelta | None
    keep: timedelta | None
    on_interrupt: str


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
            "concurrency": registration.concurrency,
            "lease_seconds": registration.lease.total_seconds(),
        },
    )


def publish(connection: sa.Connection, kinds: Iterable[Published], weights: Iterable[tuple[str, int]]) -> None:
    """Write what the code says of its kinds, and of its queues where the database says nothing yet.

    In the order of the names, so that workers that start together do not wait for each other in a circle.
    """
    for kind in sorted(kinds, key=lambda one: one.kind):
        binds = {name: getattr(kind, name) for name in Published.__slots__}
        connection.execute(statements.publish_kind(), binds)
    for name, weight in sorted(weights):
        connection.execute(statements.publish_queue(), {"name": name, "weight": weight})


def beat(connection: sa.Connection, worker_id: int) -> bool:
    """Extend the lease; False when this worker was declared dead."""
    return connection.execute(statements.beat(), {"me": worker_id}).first() is not None


def lost_of(connection: sa.Connection, held: Iterable[Fence]) -> set[Fence]:
    """Which held jobs of one worker are no longer its own: cancelled, retried by hand, rescued."""
    ordered = sorted(held, key=lambda fence: fence.id)
    if not ordered:
        return set()
    binds = {
        "worker_id": ordered[0].worker_id,
        "ids": [fence.id for fence in ordered],
        "attempts": [fence.attempt for fence in ordered],
    }
    mine = set(connection.execute(statements.still_held(), binds).scalars())
    return {fence for fence in ordered if fence.id not in mine}


def reconcile(connection: sa.Connection, *, worker_id: int, held: Iterable[int], channel: str | None) -> list[Position]:
    """Give back what carries this worker's id and is unknown to it. In one transaction, on a connection of its own.

    The lock on the worker's row waits for a claim that is still in flight.
    """
    connection.execute(statements.lock_own_row(), {"me": worker_id})
    return give_back_unknown(connection, worker_id=worker_id, held=held, channel=channel)


def leave(connection: sa.Connection, *, worker_id: int, held: Iterable[Fence] | None, channel: str | None) -> int:
    """Delete the worker's row, then give back what it holds; returns how many jobs. In one transaction.

    In this order: the delete waits for a claim in flight and none can follow. `held` None: a claim's answer was not
    read, so all that carries the id goes back. Does not wait for a locked table: a worker on its way out has a second.
    """
    connection.execute(statements.leave_soon())
    connection.execute(statements.leave(), {"me": worker_id})
    if held is None:
        given = len(give_back_unknown(connection, worker_id=worker_id, held=(), channel=channel))
    else:
        given = len(give_back(connection, held, channel=channel))
    connection.execute(statements.free_slots(), {"me": worker_id})
    return given


def capacity(connection: sa.Connection) -> tuple[int, int]:
    """How many connections the server allows to ordinary users, and how many are in use."""
    row = connection.execute(statements.capacity()).one()
    return row.most - row.reserved, row.used
