from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache
from typing import Annotated

from fastapi import Depends
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlmodel.ext.asyncio.session import AsyncSession

from shop.settings import database_url


@cache
def engine() -> AsyncEngine:
    return create_async_engine(database_url())


async def get_session() -> AsyncIterator[AsyncSession]:
    async with AsyncSession(engine()) as session:
        yield session


Session = Annotated[AsyncSession, Depends(get_session)]
