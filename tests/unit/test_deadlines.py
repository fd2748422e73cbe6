"""Waits that are ended from outside, by the socket they wait at."""

from __future__ import annotations

import gc
import os
import socket
import threading
from collections.abc import Iterator

import pytest

from jobq.worker import deadlines as module
from jobq.worker.deadlines import Deadlines

PATIENCE_SECONDS = 30


class Connection:
    """As much of psycopg's as is looked at."""

    def __init__(self) -> None:
        self.here, self.there = socket.socketpair()
        self.here.settimeout(PATIENCE_SECONDS)

    def fileno(self) -> int:
        return self.here.fileno()

    def close(self) -> None:
        self.here.close()
        self.there.close()


@pytest.fixture
def deadlines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deadlines]:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.005)
    deadlines = Deadlines()
    yield deadlines
    deadlines.close()


@pytest.fixture
def connection(deadlines: Deadlines) -> Iterator[Connection]:
    connection = Connection()
    deadlines.watch(connection)
    yield connection
    deadlines.forget(connection)
    connection.close()


def test_a_wait_ends_when_its_time_is_over(deadlines: Deadlines, connection: Connection) -> None:
    deadlines.set(connection, 0.01)
    assert connection.here.recv(1) == b""


def test_one_whose_answer_came_is_left_alone(deadlines: Deadlines, connection: Connection) -> None:
    other = Connection()
    deadlines.watch(other)
    deadlines.set(connection, 0.02)
    deadlines.lift(connection)
    deadlines.set(other, 0.03)
    assert other.here.recv(1) == b""  # by now the other would have come
    other.close()

    connection.there.send(b"x")
    assert connection.here.recv(1) == b"x"


def test_a_later_deadline_takes_the_place_of_an_earlier_one(deadlines: Deadlines, connection: Connection) -> None:
    deadlines.set(connection, PATIENCE_SECONDS)
    deadlines.set(connection, 0)
    assert connection.here.recv(1) == b""


def test_what_got_the_number_of_a_closed_connection_is_left_alone(deadlines: Deadlines) -> None:
    connection, other = Connection(), Connection()
    deadlines.watch(connection)
    deadlines.watch(other)
    deadlines.set(connection, 0)
    number = connection.fileno()
    connection.here.close()
    os.dup2(other.there.fileno(), number)  # somebody else's file
    deadlines.set(connection, 0)

    assert connection.there.recv(1) == b""
    other.here.send(b"x")
    assert other.there.recv(1) == b"x"
    os.close(number)
    deadlines.forget(other)
    deadlines.forget(connection)
    connection.close()
    other.close()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_nothing_stays_open_of_connections_that_are_gone(deadlines: Deadlines) -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for n in range(20):
        connection = Connection()
        deadlines.watch(connection)
        if n % 2:
            deadlines.forget(connection)
        connection.close()
        del connection
    gc.collect()

    assert len(os.listdir("/proc/self/fd")) == before


def test_its_thread_begins_with_the_first_deadline_and_ends_with_it(
    deadlines: Deadlines, connection: Connection
) -> None:
    assert deadlines._thread is None
    deadlines.set(connection, PATIENCE_SECONDS)
    thread = deadlines._thread
    assert isinstance(thread, threading.Thread)
    deadlines.close()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
