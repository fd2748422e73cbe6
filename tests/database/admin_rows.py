"""Rows for the tests of looking and repairing, as other parts of jobq leave them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from jobq.tables import finished_jobs, jobs, workers

NOW = sa.func.now()


def add_job(connection: sa.Connection, **values: Any) -> int:
    """An open job; running, with a `worker_id`."""
    row = {"queue": "default", "kind": "email.send", **values}
    return connection.execute(sa.insert(jobs).values(row).returning(jobs.c.id)).scalar_one()


def add_ended(connection: sa.Connection, state: str = "dead", **values: Any) -> int:
    """A job that has ended; its id comes from the sequence of open jobs."""
    moved = add_job(connection)
    connection.execute(sa.delete(jobs).where(jobs.c.id == moved))
    row = {
        "id": moved, "queue": "default", "kind": "email.send", "args": {}, "priority": 1, "run_at": NOW, "attempt": 2,
        "failures": 2, "max_attempts": 2, "created_at": NOW - timedelta(hours=3), "meta": {}, "errors": [],
        "state": state, "expires_at": NOW + timedelta(days=7), **values,
    }  # fmt: skip
    connection.execute(sa.insert(finished_jobs).values(row))
    return moved


def add_worker(connection: sa.Connection, worker_id: int, **values: Any) -> int:
    """A worker; alive, unless its `lease_until` says otherwise."""
    about = {"id": worker_id, "name": f"host:{worker_id}", "hostname": "host", "pid": 1, "version": "0"}
    lease = {"lease": timedelta(seconds=60), "lease_until": NOW + timedelta(seconds=60)}
    row = {**about, **lease, "kinds": ["email.send"], "concurrency": 20, **values}
    connection.execute(sa.insert(workers).values(row))
    return worker_id


def everything(connection: sa.Connection) -> list[tuple[Any, ...]]:
    """All rows of both tables, to see that nothing was changed."""
    return [
        tuple(row)
        for table in (jobs, finished_jobs)
        for row in connection.execute(sa.select(sa.literal(table.name), *table.c).order_by(table.c.id))
    ]
