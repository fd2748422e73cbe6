"""jobq's own fixtures, and the tools of the handlers: a provider in memory, sessions in the test's transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from enrich.tools import Base, Tools
from fake_provider import Provider


@pytest.fixture(scope="session")
def jobq_metadata() -> sa.MetaData:
    return Base.metadata


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
async def tools(jobq_async_session: AsyncSession, provider: Provider) -> AsyncIterator[Tools]:
    def answer(request: httpx.Request) -> httpx.Response:
        status, told = provider.answer(request.method, request.url.path, request.content)
        return httpx.Response(status, json=told)

    sessions = async_sessionmaker(await jobq_async_session.connection(), join_transaction_mode="create_savepoint")
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://provider") as api:
        yield Tools(api, sessions)
