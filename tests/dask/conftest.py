"""Workers whose handlers run on a Dask cluster of real processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from nodes import Nodes, nodes

sys.path.append(str(Path(__file__).parents[1] / "worker"))  # its bench serves here too
from bench import Bench

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def bench(database_url: str) -> Iterator[Bench]:
    engine = sa.create_engine(database_url)
    yield Bench(database_url, engine)
    engine.dispose()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    """A scheduler, whose workers the tests start."""
    with nodes() as made:
        yield made
