"""What `jobq check` reads: jobs that wait, and what schedules enqueue."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from jobq.statements.binds import param
from jobq.tables import jobs, schedules

WAITING = jobs.c.worker_id.is_(None)


@cache
def waiting() -> sa.Executable:
    """The next jobs that wait, by ascending id. Binds: after, upto, most."""
    after, upto = param("after", sa.BigInteger), param("upto", sa.BigInteger)
    columns = (jobs.c.id, jobs.c.kind, sa.cast(jobs.c.args, sa.Text).label("args"), jobs.c.callsite)
    chosen = sa.select(*columns).where(WAITING, jobs.c.id > after, jobs.c.id <= upto)
    return chosen.order_by(jobs.c.id).limit(param("most", sa.Integer))


@cache
def scheduled() -> sa.Executable:
    """Every schedule and its kind."""
    return sa.select(schedules.c.name, schedules.c.kind).order_by(schedules.c.name)
