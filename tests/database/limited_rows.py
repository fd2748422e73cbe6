"""Rows of limited queues, and what of their slots tests look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_job, add_worker
from store_rows import KINDS, ME, OTHER

from jobq.statements import slots as statements
from jobq.store.claiming import Claim, claim_slots
from jobq.store.ending import Fence
from jobq.tables import queues, slots

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
FIFO: dict[str, Any] = {"fifo": True}
FREE = (1, None, None, None)


def prepare(connection: sa.Connection) -> None:
    for worker_id in (ME, OTHER):
        add_worker(connection, worker_id)


def set_queue(connection: sa.Connection, name: str = "q", **values: Any) -> None:
    connection.execute(sa.insert(queues).values(name=name, **values))
    connection.execute(statements.make_slots())


def take(
    connection: sa.Connection, *names: str, in_order: bool = True, worker_id: int = ME, most: int = 100, **others: Any
) -> Claim:
    options = {"kinds": KINDS, **others}
    return claim_slots(connection, names or ("q",), worker_id=worker_id, most=most, in_order=in_order, **options)


def ids_of(claim: Claim) -> list[int]:
    return [job.id for job in claim.jobs]


def holders(connection: sa.Connection, queue: str = "q") -> list[tuple[Any, ...]]:
    """Of each slot of a queue: number, worker, job, attempt."""
    found = sa.select(slots.c.n, slots.c.worker_id, slots.c.job_id, slots.c.attempt).where(slots.c.queue == queue)
    return [tuple(each) for each in connection.execute(found.order_by(slots.c.n))]


def waits(connection: sa.Connection) -> timedelta:
    """How long the one slot there is still waits."""
    return connection.execute(sa.select(slots.c.ready_at - NOW)).scalar_one()  # type: ignore[no-any-return]


def running(connection: sa.Connection, **queue: Any) -> Fence:
    """A job of a limited queue that runs here, with its slot."""
    set_queue(connection, **(queue or FIFO))
    add_job(connection, queue="q")
    (job,) = take(connection, in_order=not queue).jobs
    return Fence(job.id, job.attempt, job.worker_id)


@contextmanager
def two(engine: sa.Engine) -> Iterator[tuple[sa.Connection, sa.Connection]]:
    """Two transactions side by side, on a FIFO queue of three jobs."""
    with engine.begin() as connection:
        prepare(connection)
        set_queue(connection, **FIFO)
        for _ in range(3):
            add_job(connection, queue="q")
    with engine.connect() as one, engine.connect() as other:
        yield one, other


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the driver is given: some statements go by SQLAlchemy's events."""
    sent: list[str] = []
    execute = psycopg.Cursor.execute

    def note(cursor: Any, query: str, *rest: Any, **options: Any) -> Any:
        sent.append(query)
        return execute(cursor, query, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", note)
        yield sent
