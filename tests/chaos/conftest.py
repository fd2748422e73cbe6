"""Real worker processes, killed, stopped and cut off. One at a time (see tests/conftest.py)."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import board as board
from places import fleet as fleet
from places import own_board as own_board
from places import own_fleet as own_fleet
from places import server as server

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slow)
