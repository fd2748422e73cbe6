"""The pytest plugin: fixtures that an application's tests can use as they stand.

    def test_an_order_makes_a_job(jobq_session):
        take_order(jobq_session, ...)
        assert_enqueued(jobq_session, send_receipt, order_id=1)

pytest loads this in every project that has jobq installed: nothing is imported here before a fixture is used. The
tables of the application: override `jobq_metadata`, or `jobq_migrate` where migrations make them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    import sqlalchemy as sa
    from sqlalchemy.ext.asyncio import AsyncSession
    from sqlalchemy.orm import Session

    from jobq.testing.databases import Server


@pytest.fixture(scope="session")
def jobq_metadata() -> Any:
    """Override it to have tables of the application's own in each database: its MetaData (`Base.metadata`)."""
    return None


@pytest.fixture(scope="session")
def jobq_migrate(jobq_metadata: Any) -> Callable[[str], None]:
    """What makes the tables of a new database, once a run: `jobq_migrate(url)`. By itself jobq's and `jobq_metadata`'s.

    Override it where migrations make them: run yours, with jobq's in the same history or by `jobq.migrate(url)` too.
    """

    def make_tables(url: str) -> None:
        import sqlalchemy as sa

        from jobq.schema import migrate

        migrate(url)
        if jobq_metadata is not None:
            engine = sa.create_engine(url, poolclass=sa.NullPool)
            jobq_metadata.create_all(engine)

    return make_tables


@pytest.fixture(scope="session")
def jobq_server() -> Iterator[Server]:
    """The server of this run, shared by the processes of pytest-xdist."""
    from jobq.testing.databases import server

    with server(os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid4().hex)[:16]) as found:
        yield found


@pytest.fixture(scope="session")
def jobq_server_url(jobq_server: Server) -> str:
    """The URL of a server where databases may be created: JOBQ_TEST_DATABASE_URL, else an embedded one of the run's."""
    return jobq_server.url


@pytest.fixture(scope="session")
def jobq_template(jobq_server: Server, jobq_migrate: Callable[[str], None]) -> str:
    """The name of a database with all tables, to clone."""
    return jobq_server.template(jobq_migrate)


@pytest.fixture
def jobq_database_url(jobq_server: Server, jobq_template: str) -> Iterator[str]:
    """A database of the test's own: it may commit, and start workers and processes, as it likes."""
    with jobq_server.database(jobq_template) as url:
        yield url


@pytest.fixture
def jobq_engine(jobq_database_url: str) -> Iterator[sa.Engine]:
    """An engine on `jobq_database_url`."""
    import sqlalchemy as sa

    engine = sa.create_engine(jobq_database_url)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def jobq_shared_engine(jobq_server: Server, jobq_template: str) -> Iterator[sa.Engine]:
    """An engine on a database that the tests of this process share: whoever uses it rolls back."""
    import sqlalchemy as sa

    with jobq_server.database(jobq_template) as url:
        engine = sa.create_engine(url)
        yield engine
        engine.dispose()


@pytest.fixture
def jobq_connection(jobq_shared_engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection in a transaction that is rolled back: to bind the application's own sessions to."""
    with jobq_shared_engine.connect() as connection:
        transaction = connection.begin()
        yield connection
        transaction.rollback()


@pytest.fixture
def jobq_session(jobq_connection: sa.Connection) -> Iterator[Session]:
    """A Session on `jobq_connection`, rolled back at the end; meanwhile it may commit, which ends savepoints."""
    from sqlalchemy.orm import Session

    with Session(jobq_connection, join_transaction_mode="create_savepoint") as session:
        yield session


@pytest.fixture
def jobq_async_session(jobq_shared_engine: sa.Engine) -> Iterator[AsyncSession]:
    """As `jobq_session`, in a transaction of its own; a commit expires nothing.

    It waits for no event loop, so that any plugin for async tests will do, and with each test a new loop.
    """
    from jobq.testing.joined import JoinedSessions

    with jobq_shared_engine.connect() as connection:
        transaction = connection.begin()
        session = JoinedSessions(connection).async_session(expire_on_commit=False)
        yield session
        session.sync_session.close()
        transaction.rollback()
