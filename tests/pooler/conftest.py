"""Workers and commands behind a real PgBouncer in transaction mode."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from bouncer import binary, bouncer, through

TESTS = Path(__file__).parents[1]
sys.path.extend(str(TESTS / folder) for folder in ("worker", "chaos"))  # their benches serve here too
from bench import Bench  # noqa: E402
from board import Board  # noqa: E402

import jobq  # noqa: E402


@pytest.fixture(scope="session")
def pooler_port(server_url: str) -> Iterator[int]:
    if binary() is None:
        pytest.skip("PgBouncer is not installed here (apt-get install pgbouncer)")
    with bouncer(sa.make_url(server_url)) as port:
        yield port


@pytest.fixture
def pooled_url(database_url: str, pooler_port: int) -> str:
    """The test's database behind the pooler."""
    return through(database_url, pooler_port)


@pytest.fixture
def empty_pooled_url(empty_database_url: str, pooler_port: int) -> str:
    """A database without the tables of jobq, behind the pooler."""
    return through(empty_database_url, pooler_port)


@pytest.fixture
def app() -> jobq.App:
    return jobq.App()


@pytest.fixture
def bench(database_url: str) -> Iterator[Bench]:
    """The database as it is without the pooler."""
    engine = sa.create_engine(database_url)
    yield Bench(database_url, engine)
    engine.dispose()


@pytest.fixture
def board(database_url: str) -> Iterator[Board]:
    board = Board(database_url)
    board.prepare()
    yield board
    board.engine.dispose()
