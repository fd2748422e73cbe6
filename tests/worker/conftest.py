"""A database with room for workers, which run in the test's own process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from bench import Bench

import jobq
from jobq.grants import Duty

POOLER = Path(__file__).parents[1] / "pooler"
ROOM = 20  # connections to the server: as many as the handlers of a test want at once


@pytest.fixture
def app() -> jobq.App:
    return jobq.App()


@pytest.fixture
def duty() -> str:
    """Workers have the rights of a worker and no more."""
    return Duty.WORK


@pytest.fixture(scope="session")
def port_of_pooler(request: pytest.FixtureRequest) -> Iterator[int | None]:
    """With --pooler a PgBouncer before the server of the run."""
    if not request.config.getoption("--pooler"):
        yield None
        return
    sys.path.append(str(POOLER))
    from bouncer import binary, bouncer

    if binary() is None:
        pytest.skip("PgBouncer is not installed here (apt-get install pgbouncer)")
    with bouncer(sa.make_url(request.getfixturevalue("server_url")), size=ROOM) as port:
        yield port


@pytest.fixture
def bench(owner_url: str, database_url: str, port_of_pooler: int | None) -> Iterator[Bench]:
    # The limits: a statement of the test's own may not stop the loop, which the worker shares, for long.
    limits = {"options": "-c statement_timeout=10s -c lock_timeout=5s"}
    engine = sa.create_engine(owner_url, connect_args=limits)
    pooled = sa.make_url(database_url).set(port=port_of_pooler).render_as_string(hide_password=False)
    yield Bench(database_url, engine, pooled if port_of_pooler else None)
    engine.dispose()
