"""What the tests of enqueue_select share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from jobq.handlers import Handler
from jobq.registry import App
from jobq.tables import jobs

AWARE = sa.DateTime(timezone=True)
TEXT = sa.cast(jobs.c.args, sa.Text).label("text")
LATER = datetime(2130, 6, 1, 10, 0, 0, 500_000, tzinfo=UTC)


def stored(bind: sa.Connection | Session) -> list[sa.Row[Any]]:
    return list(bind.execute(sa.select(jobs, TEXT).order_by(jobs.c.id)))


def handler_of(annotation: Any) -> Handler[Any, Any]:
    """A handler with the one parameter `x`."""

    def handle(x: Any) -> None: ...

    handle.__annotations__ = {"x": annotation, "return": None}
    return App().handler("types")(handle)
