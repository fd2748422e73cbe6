from __future__ import annotations

import asyncio
import logging

import sqlalchemy as sa
from alembic import context
from sqlalchemy.ext.asyncio import create_async_engine
from sqlmodel import SQLModel

import shop.models  # noqa: F401  # so that the metadata knows the tables
from shop.settings import database_url

logging.getLogger("alembic").setLevel(logging.INFO)


def run_migrations(connection: sa.Connection) -> None:
    context.configure(connection=connection, target_metadata=SQLModel.metadata)
    with context.begin_transaction():
        context.run_migrations()


async def run_online() -> None:
    engine = create_async_engine(database_url(), poolclass=sa.NullPool)
    async with engine.connect() as connection:
        await connection.run_sync(run_migrations)
    await engine.dispose()


def run_offline() -> None:
    context.configure(dialect_name="postgresql", target_metadata=SQLModel.metadata, literal_binds=True)
    with context.begin_transaction():
        context.run_migrations()


if context.is_offline_mode():
    run_offline()
else:
    logging.basicConfig(format="%(levelname)-5.5s [%(name)s] %(message)s")
    asyncio.run(run_online())
