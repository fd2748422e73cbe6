"""Runs the shop's history, online and offline (`alembic upgrade head --sql`)."""

from __future__ import annotations

from logging.config import fileConfig
from typing import Any

import sqlalchemy as sa
from alembic import context

from shop import models
from shop.database import database_url

if context.config.config_file_name:
    fileConfig(context.config.config_file_name, disable_existing_loggers=False)


def run(**where: Any) -> None:
    context.configure(target_metadata=models.Item.metadata, **where)
    with context.begin_transaction():
        context.run_migrations()


if context.is_offline_mode():
    run(dialect_name="postgresql", literal_binds=True)
else:
    url = context.config.attributes.get("url") or database_url()  # the tests have a database of their own
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        run(connection=connection)
