"""A database for the tests, beside that of the shop; what a test does there is rolled back."""

from __future__ import annotations

import os
from collections.abc import Iterator

import jobq
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from shop.database import database_url
from shop.models import Base, fill


@pytest.fixture(scope="session")
def engine() -> Iterator[sa.Engine]:
    shops = sa.make_url(database_url())
    name = f"shop_test_{os.getpid()}"
    elsewhere = sa.create_engine(shops, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with elsewhere.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
        engine = sa.create_engine(shops.set(database=name))
        Base.metadata.create_all(engine)
        jobq.migrate(engine)
        yield engine
        engine.dispose()
        connection.execute(sa.text(f"DROP DATABASE {name}"))


@pytest.fixture
def session(engine: sa.Engine) -> Iterator[Session]:
    """It holds the orders of before, and may commit: that ends a savepoint."""
    with engine.connect() as connection:
        connection.begin()
        with Session(connection, join_transaction_mode="create_savepoint") as session:
            fill(session)
            session.commit()
            yield session
