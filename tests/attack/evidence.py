"""What the checks of guarantees read besides jobq's own tables: runs of handlers, their work, a journal of changes."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import UUID

from jobq.tables import TIMESTAMP, all_jobs

own = sa.MetaData()
# `run`: a value of its own for each run. `ended_at`: NULL until the handler has ended; only G5 and G9 need it.
EFFECTS = sa.Table(
    "effects",
    own,
    sa.Column("run", UUID, primary_key=True),
    sa.Column("job_id", sa.BigInteger, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("at", TIMESTAMP, nullable=False, server_default=sa.func.clock_timestamp()),
    sa.Column("ended_at", TIMESTAMP),
)
# What a handler has written inside of `current().transaction()`.
BOOKS = sa.Table(
    "books", own, sa.Column("job_id", sa.BigInteger, nullable=False), sa.Column("attempt", sa.Integer, nullable=False)
)
# One row a change of `jobs` or `finished_jobs`: TG_OP in `op`, the new row's values (of a DELETE the old one's).
JOURNAL = sa.Table(
    "journal",
    own,
    sa.Column("n", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column("at", TIMESTAMP, nullable=False, server_default=sa.func.clock_timestamp()),
    sa.Column("txid", sa.BigInteger, nullable=False, server_default=sa.text("txid_current()")),
    sa.Column("relation", sa.Text, nullable=False),
    sa.Column("op", sa.Text, nullable=False),
    sa.Column("job_id", sa.BigInteger, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("worker_id", sa.BigInteger),
    sa.Column("expires_at", TIMESTAMP),
)


class Violation(NamedTuple):
    """`job_id`: the job, or None where the subject is named in `what` alone."""

    guarantee: str
    job_id: int | None
    what: str


def in_transaction(one: sa.Alias, other: sa.Alias, relation: str, op: str) -> sa.ColumnElement[bool]:
    """Whether the transaction of `one` has also made such a change of the same job."""
    same = sa.and_(other.c.job_id == one.c.job_id, other.c.txid == one.c.txid)
    return sa.exists().where(same, other.c.relation == relation, other.c.op == op)


def of_another(effects: sa.FromClause, attempt: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Whether a run is not one of this attempt of the job."""
    return sa.or_(effects.c.attempt != attempt, effects.c.job_id != all_jobs.c.id)


def runs_with_queues(effects: sa.FromClause, excused: Collection[int]) -> sa.Subquery:
    known = sa.select(effects.c.run, effects.c.job_id, effects.c.at, effects.c.ended_at, all_jobs.c.queue)
    of_jobs = known.join(all_jobs, all_jobs.c.id == effects.c.job_id)
    return of_jobs.where(effects.c.pid.not_in(excused)).subquery()
