from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import NamedTuple

import httpx
import sqlalchemy as sa
from jobq import embedded, urls
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase): ...


class Company(Base):
    __tablename__ = "companies"

    domain: Mapped[str] = mapped_column(primary_key=True)
    customer: Mapped[str]
    people: Mapped[int | None]


class Tools(NamedTuple):  # what handlers find in `jobq.current().state`
    api: httpx.AsyncClient
    sessions: async_sessionmaker[AsyncSession]


async def open_tools() -> AsyncIterator[Tools]:
    engine = create_async_engine(database_url())
    try:
        async with httpx.AsyncClient(base_url=os.environ.get("PROVIDER_URL", "http://localhost:8090")) as api:
            yield Tools(api, async_sessionmaker(engine))
    finally:
        await engine.dispose()


def database_url() -> sa.URL | str:
    """DATABASE_URL, read as the commands of jobq do; without it a PostgreSQL of this folder's own."""
    return urls.from_environment() or embedded.ensure(embedded.project_directory())
