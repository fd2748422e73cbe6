"""Attacks on the guarantees, with real servers and real workers, in the places that tests/chaos has for them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
for folder in ("chaos", "drivers", "pooler"):
    if (path := str(HERE.parent / folder)) not in sys.path:
        sys.path.append(path)

from arena import Arena, arena_on  # noqa: E402
from places import board, fleet, own_board, own_fleet, server  # noqa: E402, F401


@pytest.fixture
def arena(database_url: str, tmp_path: Path) -> Iterator[Arena]:
    """A database that keeps the record of record.py, and workers on it."""
    with arena_on(database_url, tmp_path) as arena:
        yield arena


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slow)
