"""The server's list of its sessions."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from jobq.statements.binds import INTEGERS, param


@cache
def sessions() -> sa.Executable:
    """Those of these process ids that there are, and since when; NULL: not for this role to see. Binds: pids."""
    pid, backend_start = sa.column("pid", sa.Integer), sa.column("backend_start", sa.DateTime(timezone=True))
    activity = sa.table("pg_stat_activity", pid, backend_start, schema="pg_catalog")
    return sa.select(pid, backend_start).select_from(activity).where(pid == sa.any_(param("pids", INTEGERS)))
