"""Where the tests of chaos and attack happen: databases, servers and fleets of a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from board import Board
from fleet import Fleet, fleet_on

import jobq
from jobq import embedded

FAST = {"fsync": "off", "full_page_writes": "off", "timezone": "UTC"}


@pytest.fixture
def board(database_url: str) -> Iterator[Board]:
    board = Board(database_url)
    board.prepare()
    yield board
    board.engine.dispose()


@pytest.fixture
def fleet(board: Board, tmp_path: Path) -> Iterator[Fleet]:
    """Workers on `board`'s database."""
    with fleet_on(board.url, tmp_path) as fleet:
        yield fleet


@dataclass
class Server:
    """A server that a test may stop; it comes back at the same address."""

    directory: Path
    settings: dict[str, str]
    url: str = ""

    def start(self) -> None:
        self.url = embedded.ensure(self.directory, settings=self.settings)

    def stop(self) -> None:
        assert embedded.stop(self.directory)


@pytest.fixture
def server(own_directory: Path) -> Server:
    """A server of the test's own, with the tables of jobq in it."""
    server = Server(own_directory, FAST)
    server.start()
    jobq.migrate(server.url)
    return server


@pytest.fixture
def own_board(server: Server) -> Iterator[Board]:
    board = Board(server.url)
    board.prepare()
    yield board
    board.engine.dispose()


@pytest.fixture
def own_fleet(server: Server, own_board: Board, tmp_path: Path) -> Iterator[Fleet]:
    """Workers on `own_board`'s database."""
    with fleet_on(server.url, tmp_path) as fleet:
        yield fleet
