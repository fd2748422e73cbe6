"""Jobs with the numbers that the documents name."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

import jobq
from jobq.handlers import Kind
from jobq.tables import finished_jobs, jobs


def make_job(engine: sa.Engine, number: int, kind: Kind[...], **args: Any) -> None:
    """A job of that number, that waits; in place of the one that was there."""
    with engine.begin() as connection:
        for table in (jobs, finished_jobs):
            connection.execute(sa.delete(table).where(table.c.id == number))
        given = jobq.enqueue(connection, kind, **args)
        connection.execute(sa.update(jobs).where(jobs.c.id == given.id).values(id=number))
