"""A4: the limits of the worker's own connections, on a network that forgets or delays."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import anyio
import pytest
import sqlalchemy as sa
from lines import Fate
from network import Network, network_to

from jobq.database import CONNECT_LIMIT, Database
from jobq.source import source_of

pytestmark = pytest.mark.anyio
SIZE = 3
DELAY = timedelta(seconds=2)  # there and back: a slow network, and no outage


@pytest.fixture
def network(database_url: str) -> Iterator[Network]:
    with network_to(database_url) as network:
        yield network


@pytest.fixture
async def database(network: Network) -> AsyncIterator[Database]:
    limit = timedelta(seconds=0.5)
    database = Database(source_of(network.url), name="jobq test", size=SIZE, answer_limit=limit)
    yield database
    await database.close()


def one(connection: sa.Connection) -> int:
    return int(connection.exec_driver_sql("SELECT 1 FROM pg_sleep(0.05)").scalar_one())


async def at_once(database: Database, number: int) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(number):
            group.start_soon(database.run, one)


async def test_after_one_silence_no_other_idle_connection_is_trusted(database: Database, network: Network) -> None:
    await at_once(database, SIZE)
    assert network.leave_half_open() == SIZE

    with pytest.raises(ConnectionError, match="did not answer within"):
        await database.run(one)

    await at_once(database, SIZE)


async def test_each_statement_of_a_transaction_has_its_own_time(database: Database) -> None:
    def slow(connection: sa.Connection) -> list[int]:
        return [connection.exec_driver_sql("SELECT 1 FROM pg_sleep(0.2)").scalar_one() for _ in range(5)]

    assert await database.transaction(slow) == [1] * 5


async def test_a_connection_takes_few_round_trips(database: Database, network: Network) -> None:
    requests = 0

    def count(_: bytes) -> Fate:
        nonlocal requests
        requests += 1
        return Fate.PASS

    with network.weathered(on_request=count):
        await database.run(one)
        first = requests - 1
        await at_once(database, 2)

    assert first * DELAY < CONNECT_LIMIT
    assert (requests - 1 - first - 2) * DELAY < CONNECT_LIMIT / 2
