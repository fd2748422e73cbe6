"""An application that has an Alembic history before it has jobq."""

from __future__ import annotations

from pathlib import Path

import pytest
from history_shop import Shop


@pytest.fixture
def offline_shop(tmp_path: Path) -> Shop:
    """With three revisions of its own, and a database that nobody reaches."""
    shop = Shop(tmp_path / "shop")
    shop.write_history()
    return shop


@pytest.fixture
def shop(offline_shop: Shop, empty_database_url: str) -> Shop:
    """With three revisions of its own, and an empty database."""
    return offline_shop.on(empty_database_url)
