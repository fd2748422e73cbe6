"""What several tests of this folder look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from roles_of_tests import switching
from sqlalchemy import event

from jobq.grants import Duty
from jobq.store import inserting


@pytest.fixture(autouse=True)
def by_role(duty: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """In tests that are marked so, whatever enqueues does it with the rights of the duty alone."""
    if duty == Duty.ENQUEUE:
        for name in ("insert", "insert_many", "insert_select"):
            monkeypatch.setattr(inserting, name, switching(getattr(inserting, name), duty))


@pytest.fixture
def sent(shared_engine: sa.Engine) -> Iterator[list[str]]:
    """The SQL that is sent to the shared database meanwhile."""
    texts: list[str] = []

    def note(connection: Any, cursor: Any, sql: str, *_: Any) -> None:
        texts.append(sql)

    event.listen(shared_engine, "before_cursor_execute", note)
    yield texts
    event.remove(shared_engine, "before_cursor_execute", note)
