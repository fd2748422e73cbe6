"""A database for the tests, beside that of the shop; each test finds it as a new shop has it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from flask import Flask
from flask.testing import FlaskClient

from shop import create_app
from shop.database import database_url, db

INI = Path(__file__).parents[1] / "alembic.ini"


@pytest.fixture(scope="session")
def test_url() -> Iterator[sa.URL]:
    shops = sa.make_url(database_url())
    name = f"shop_test_{os.getpid()}"
    engine = sa.create_engine(shops, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
        config = Config(INI)
        config.attributes["url"] = shops.set(database=name)
        command.upgrade(config, "head")
        yield shops.set(database=name)
        connection.execute(sa.text(f"DROP DATABASE {name}"))


@pytest.fixture
def app(test_url: sa.URL) -> Iterator[Flask]:
    app = create_app(SQLALCHEMY_DATABASE_URI=test_url, TESTING=True)
    with app.app_context():
        yield app
        db.session.rollback()
        db.session.execute(sa.text("TRUNCATE orders, receipts, jobq.jobs, jobq.finished_jobs RESTART IDENTITY"))
        db.session.execute(sa.text("UPDATE items SET stock = 10"))
        db.session.commit()
        db.session.remove()
        db.engine.dispose()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()
