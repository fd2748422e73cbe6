"""One handler with a key, enqueued so that its waiting job is replaced, or given another time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from jobq.registry import App
from jobq.tables import jobs

app = App()
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
LATER = datetime(2130, 6, 1, 10, tzinfo=UTC)


@app.handler("sync", queue="sync", unique=("company_id",), max_attempts=3)
def sync(company_id: int, what: str = "all") -> None: ...


latest = sync.options(on_conflict="replace")
debounced = sync.options(on_conflict="reschedule", delay=MINUTE)


def rows(connection: sa.Connection) -> list[sa.Row[Any]]:
    return list(connection.execute(sa.select(jobs).order_by(jobs.c.id)))


def row(connection: sa.Connection) -> sa.Row[Any]:
    (only,) = rows(connection)
    return only


def change(connection: sa.Connection, **values: Any) -> None:
    connection.execute(sa.update(jobs).values(**values))


def ago(span: timedelta) -> Any:
    return sa.func.now() - sa.cast(span, sa.Interval)
