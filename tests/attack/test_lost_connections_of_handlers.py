"""A4: the connection of a handler's transaction is lost, and neither side is told of it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from board import Board
from holes import needs_linux, swallow
from lengths import length
from network import Network, network_to
from sqlalchemy.orm import Session
from tally import tally

from jobq import session_settings
from jobq.database import Database
from jobq.source import source_of
from jobq.worker import handler_engines, session_watch
from jobq.worker.handler_engines import HandlerEngines

# The server's own limits in CI are shorter than those of a worker; the way to it is the same.
SHORT = dict(zip(session_settings.SERVER_KEEPALIVE, ["1", "1", "2", "2000"], strict=True))
REAL: dict[str, str] = {}
LIMITS = length(ci=SHORT, chaos=REAL, long=REAL)
SILENT = {"keepalives": "0", "tcp_user_timeout": "0"}  # a machine without power does not even give up with a RST
NOTICED_SECONDS = length(ci=15, chaos=45, long=45)
SEED_SECONDS = length(ci=4, chaos=45, long=45)
pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("where", ["loop", "thread"])
Work = Callable[[Session], Any]


@pytest.fixture(autouse=True)
def _limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler_engines, "END_SECONDS", 0.1)
    monkeypatch.setattr(handler_engines, "PING_SECONDS", 0.1)
    monkeypatch.setattr(handler_engines, "TRUSTED_SECONDS", 0.0)


@pytest.fixture(autouse=True)
def board(database_url: str) -> Iterator[Board]:
    board = Board(database_url)
    with board.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE effects (n int UNIQUE)")
    yield board
    board.engine.dispose()


@pytest.fixture
def network(database_url: str) -> Iterator[Network]:
    with network_to(database_url) as network:
        yield network


@pytest.fixture
async def engines(network: Network) -> AsyncIterator[HandlerEngines]:
    engines = HandlerEngines(source_of(network.url), name="test", size=1)
    yield engines
    await engines.close()


async def within(engines: HandlerEngines, where: str, work: Work) -> Any:
    """In a session of a handler, in a loop or in a thread."""

    def in_a_thread() -> Any:
        with engines.session() as session:
            return work(session)

    with anyio.fail_after(NOTICED_SECONDS + 30):
        if where == "thread":
            return await anyio.to_thread.run_sync(in_a_thread, abandon_on_cancel=True)
        async with engines.async_session() as session:
            return await session.run_sync(work)


def write(session: Session, number: int = 1) -> None:
    session.execute(sa.text("INSERT INTO effects VALUES (:number)"), {"number": number})


def keep(number: int) -> Work:
    return lambda session: (write(session, number), session.commit())


@both
@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_the_end_of_a_transaction_is_not_waited_for_for_ever(
    engines: HandlerEngines, network: Network, where: str, end: str
) -> None:
    def work(session: Session) -> None:
        write(session)
        assert network.leave_half_open()
        engines.expect_end(session.connection())
        with pytest.raises(sa.exc.OperationalError):
            getattr(session, end)()

    await within(engines, where, work)


@both
async def test_a_connection_lost_while_it_was_idle_is_made_anew(
    engines: HandlerEngines, network: Network, board: Board, where: str
) -> None:
    await within(engines, where, keep(1))
    assert network.leave_half_open()
    await within(engines, where, keep(2))

    assert board.rows("SELECT count(*) FROM effects")[0][0] == 2


@both
async def test_a_statement_that_the_server_knows_nothing_of_is_not_waited_for(
    engines: HandlerEngines, network: Network, database_url: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_watch, "INTERVAL", session_watch.INTERVAL * 0)
    database = Database(source_of(database_url), name="test", size=1)
    watch: Any = session_watch.SessionWatch(database, None, engines, stop=anyio.Event())  # type: ignore[arg-type]

    def work(session: Session) -> None:
        session.execute(sa.text("SELECT pg_sleep(0.3)"))  # while this goes on somebody looks, and lets it
        write(session)
        assert network.leave_half_open()
        with pytest.raises(sa.exc.OperationalError):
            write(session, 2)

    async with anyio.create_task_group() as group:
        group.start_soon(within, engines, where, work)
        with anyio.fail_after(NOTICED_SECONDS):
            while not await watch.run_once():  # noqa: ASYNC110  # that is the event
                await anyio.sleep(0.05)
    await database.close()


@needs_linux
@pytest.mark.parametrize(("where", "seed"), [("loop", ""), ("thread", ""), ("loop", "tells_the_server_nothing")])
async def test_the_server_lets_go_of_a_client_that_vanished_in_its_transaction(
    database_url: str, board: Board, where: str, seed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {} if seed else {**session_settings.SERVER_KEEPALIVE, **LIMITS}
    monkeypatch.setattr(session_settings, "SERVER_KEEPALIVE", told)
    url = sa.make_url(database_url).update_query_dict(SILENT)
    engines = HandlerEngines(source_of(url), name="test", size=1)

    def work(session: Session) -> bool:
        write(session)
        driver: Any = session.connection().connection.driver_connection
        with socket.fromfd(driver.fileno(), socket.AF_INET, socket.SOCK_STREAM) as cable:
            swallow(cable)
        try:
            return is_free(board, within=SEED_SECONDS if seed else NOTICED_SECONDS)
        finally:
            session.connection().invalidate()

    freed = await within(engines, where, work)
    await engines.close()

    tally(
        f"A4 clients that vanished in their transaction{' of which the server is told nothing' if seed else ''}",
        **({"caught": int(not freed)} if seed else {"outages": 1, "violations": int(not freed)}),
    )
    assert freed is not bool(seed)


def is_free(board: Board, within: float) -> bool:
    """Whether the row of the vanished one can be written by then."""
    with board.engine.begin() as connection:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{within}s'")
        try:
            connection.exec_driver_sql("INSERT INTO effects VALUES (1)")
        except sa.exc.OperationalError:
            return False
    return True
