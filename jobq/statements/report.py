"""Writing what handlers report into the `meta` of their jobs: merged, fenced, many jobs in one statement.

The bind of the worker is `me`: an UPDATE would set the column worker_id from one of that name.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from jobq.statements.binds import element
from jobq.statements.fence import ended_here, held, place
from jobq.tables import finished_jobs, jobs


@cache
def report(*, waits: bool) -> sa.Executable:
    """Merge patches into the meta of jobs that are still ours; returns the ids of those.

    `waits` False: rows that somebody has locked are left out, so that one of them holds nobody up.
    Binds: me, ids (ascending), attempts, patches (JSON text of objects).
    """
    mine = held("me")
    if not waits:
        free = sa.select(jobs.c.id).where(*mine).with_for_update(skip_locked=True, key_share=True)
        mine = jobs.c.id == sa.any_(sa.func.array(free.scalar_subquery())), *mine
    return sa.update(jobs).where(*mine).values(meta=_merged(jobs)).returning(jobs.c.id)


@cache
def report_done() -> sa.Executable:
    """The same for jobs that these attempts have completed in transactions of their own. Binds: as above."""
    done = finished_jobs.c.state == sa.literal_column("'done'", sa.Text)
    told = sa.update(finished_jobs).where(*ended_here("me"), done)
    return told.values(meta=_merged(finished_jobs)).returning(finished_jobs.c.id)


def _merged(table: sa.Table) -> sa.ColumnElement[Any]:
    patch = sa.cast(element("patches", sa.Text, place(table.c.id)), JSONB)
    return sa.type_coerce(table.c.meta.op("||")(patch), JSONB)
