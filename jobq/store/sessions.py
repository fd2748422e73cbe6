"""Sessions of the server, told by process id and by when they began: ids are given out again."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from jobq.statements import sessions as statements

Session = tuple[int, datetime]


def ended(connection: sa.Connection, sessions: Collection[Session]) -> set[Session]:
    """Those of them that are not there any more."""
    rows = connection.execute(statements.sessions(), {"pids": sorted({pid for pid, _ in sessions})})
    began = {row.pid: row.backend_start for row in rows}
    return {(pid, since) for pid, since in sessions if pid not in began or began[pid] not in (None, since)}
