"""A database with room for workers, which run in the test's own process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from bench import Bench

import jobq


@pytest.fixture
def app() -> jobq.App:
    return jobq.App()


@pytest.fixture
def bench(database_url: str) -> Iterator[Bench]:
    # The limits: a statement of the test's own may not stop the loop, which the worker shares, for long.
    limits = {"options": "-c statement_timeout=10s -c lock_timeout=5s"}
    engine = sa.create_engine(database_url, connect_args=limits)
    yield Bench(database_url, engine)
    engine.dispose()
