"""What is planned otherwise than the caller's connection would, and the caller's settings afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from jobq.admin import stats
from jobq.inspection import health
from jobq.overview import overview
from jobq.store.switching import switched

LANES = "WITH RECURSIVE names"


def shown(connection: sa.Connection, name: str) -> str:
    return str(connection.exec_driver_sql(f"SHOW {name}").scalar_one())


@pytest.mark.parametrize("look", [stats, health, overview])
def test_lanes_are_read_without_compiling_and_the_callers_setting_comes_back(
    connection: sa.Connection, look: Callable[[sa.Connection], Any]
) -> None:
    met: list[str] = []

    def note(connection: Any, cursor: Any, sql: str, *_: Any) -> None:
        if sql.startswith(LANES):
            met.append(shown(connection, "jit"))

    connection.exec_driver_sql("SET LOCAL jit = on")
    event.listen(connection, "before_cursor_execute", note)
    look(connection)
    event.remove(connection, "before_cursor_execute", note)

    assert met
    assert set(met) == {"off"}
    assert shown(connection, "jit") == "on"


def test_a_failed_statement_leaves_no_setting_behind(connection: sa.Connection) -> None:
    before = shown(connection, "enable_seqscan")

    with (
        pytest.raises(sa.exc.DataError),
        connection.begin_nested(),
        switched(connection, "enable_seqscan", "off"),
    ):
        connection.exec_driver_sql("SELECT 1 / 0")

    assert shown(connection, "enable_seqscan") == before
