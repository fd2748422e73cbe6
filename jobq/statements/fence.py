"""What every write to a claimed job is compared with: its id, the attempt and the worker."""

from __future__ import annotations

import sqlalchemy as sa

from jobq.statements.binds import BIGINTS, element, param
from jobq.tables import finished_jobs, jobs


def place(id_: sa.ColumnElement[int] = jobs.c.id) -> sa.ColumnElement[int]:
    """Where a row's id stands in the bind `ids`, from 1: its attempt, state and outcome stand at the same place.

    Not a join with unnest(): the planner believes that one row is running and may go quadratic.
    """
    ids = sa.select(param("ids", BIGINTS)).scalar_subquery()
    return sa.func.width_bucket(id_, ids, type_=sa.Integer)


def held(worker: str = "worker_id") -> tuple[sa.ColumnElement[bool], ...]:
    """The fence for many jobs. Binds: worker_id (or as `worker` says), ids (ascending), attempts."""
    return (
        jobs.c.id == sa.any_(param("ids", BIGINTS)),
        jobs.c.attempt == element("attempts", sa.Integer, place()),
        jobs.c.worker_id == param(worker, sa.BigInteger),
    )


def still_mine() -> tuple[sa.ColumnElement[bool], ...]:
    """The fence for one job. Binds: id, attempt, worker_id (prefixed, as an UPDATE's own columns share the names)."""
    return (
        jobs.c.id == param("the_id", sa.BigInteger),
        jobs.c.attempt == param("the_attempt", sa.Integer),
        jobs.c.worker_id == param("the_worker_id", sa.BigInteger),
    )


def ended_here(worker: str = "worker_id") -> tuple[sa.ColumnElement[bool], ...]:
    """The fence for many jobs that have ended. Binds: worker_id (or as `worker` says), ids (ascending), attempts."""
    return (
        finished_jobs.c.id == sa.any_(param("ids", BIGINTS)),
        finished_jobs.c.attempt == element("attempts", sa.Integer, place(finished_jobs.c.id)),
        finished_jobs.c.worker_id == param(worker, sa.BigInteger),
    )


def done_by_us() -> tuple[sa.ColumnElement[bool], ...]:
    """The fence for one job that this attempt has ended as done. Binds: the_id, the_attempt, the_worker_id."""
    return (
        finished_jobs.c.id == param("the_id", sa.BigInteger),
        finished_jobs.c.attempt == param("the_attempt", sa.Integer),
        finished_jobs.c.worker_id == param("the_worker_id", sa.BigInteger),
        finished_jobs.c.state == sa.literal_column("'done'"),
    )
