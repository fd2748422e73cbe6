"""What may happen to a PostgreSQL; each is over at the end of its block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import psycopg
from besieged import Besieged, filled
from board import Board

BALLAST = "SELECT pg_logical_emit_message(true, 'ballast', repeat('x', 4000000))"


@contextmanager
def immediate_stop(server: Besieged, _: Board) -> Iterator[None]:
    server.end_at_once()
    yield
    server.start()


@contextmanager
def killed_postmaster(server: Besieged, _: Board) -> Iterator[None]:
    server.kill()
    yield
    server.start()


@contextmanager
def terminated_sessions(_: Besieged, board: Board) -> Iterator[None]:
    """And their successors."""
    assert board.terminate_workers()
    yield
    board.terminate_workers()


@contextmanager
def no_connection_left(server: Besieged, board: Board) -> Iterator[None]:
    """Others have taken each that there is, those of the workers too."""
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(server.connect())
            except psycopg.OperationalError:
                if board.sessions() == 0:
                    break
                board.terminate_workers()
        yield


@contextmanager
def read_only(server: Besieged, board: Board) -> Iterator[None]:
    with setting(board, "default_transaction_read_only", "on"):
        yield


@contextmanager
def standby(server: Besieged, _: Board) -> Iterator[None]:
    """It comes back as the standby of a primary that is gone, and is promoted."""
    server.end_at_once()
    mark = server.home.data / "standby.signal"
    mark.touch()
    server.home.hand_over(mark)
    server.start()
    yield
    with server.connect() as connection:
        connection.execute("SELECT pg_promote()")


@contextmanager
def full_disk(server: Besieged, _: Board) -> Iterator[None]:
    """No room for rows at first, then none for the log: that ends the server, which finds none for its recovery."""
    with filled(server.directory):
        with suppress(psycopg.Error), server.connect() as connection:
            while True:
                connection.execute(BALLAST)
        yield
    server.start()


@contextmanager
def statement_timeout(_: Besieged, board: Board) -> Iterator[None]:
    """As short as can be, for each who does not set it."""
    with setting(board, "statement_timeout", "1ms"):
        yield


@contextmanager
def lock_timeout(_: Besieged, board: Board) -> Iterator[None]:
    """While the tables are locked."""
    with setting(board, "lock_timeout", "10ms"), board.holding("LOCK TABLE jobq.jobs, jobq.workers"):
        yield


@contextmanager
def idle_in_transaction_timeout(_: Besieged, board: Board) -> Iterator[None]:
    with setting(board, "idle_in_transaction_session_timeout", "1ms"):
        yield


@contextmanager
def setting(board: Board, name: str, value: str) -> Iterator[None]:
    """A setting of the database, which sessions have from their beginning on: so they begin anew."""
    database = board.engine.url.database
    board.rows(f"ALTER DATABASE \"{database}\" SET {name} = '{value}'")
    board.terminate_workers()
    yield
    board.rows(f'ALTER DATABASE "{database}" RESET {name}')
