"""What several tests of this folder look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event


@pytest.fixture
def sent(shared_engine: sa.Engine) -> Iterator[list[str]]:
    """The SQL that is sent to the shared database meanwhile."""
    texts: list[str] = []

    def note(connection: Any, cursor: Any, sql: str, *_: Any) -> None:
        texts.append(sql)

    event.listen(shared_engine, "before_cursor_execute", note)
    yield texts
    event.remove(shared_engine, "before_cursor_execute", note)
