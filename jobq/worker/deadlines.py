"""An end for waits at a server's answer that have none of their own, in threads and in event loops."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary, finalize

LOOK_SECONDS = 0.5


class Deadlines:
    """Shuts the sockets of connections whose time is over: whoever waits for an answer there meets a lost connection.

    Nothing else ends a wait in C, and a cancellation would be sent to the server, where a COMMIT that is merely slow
    has to go on. What is shut is a copy of the descriptor, made when the connection is: its own number may be another's
    by then. One thread looks, from the first deadline on.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: WeakKeyDictionary[Any, socket.socket] = WeakKeyDictionary()
        self._due: dict[Any, float] = {}
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, connection: Any) -> None:
        """A new connection of psycopg, sync or async, that may get deadlines until it is forgotten."""
        copy = socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM)  # of any family: it is only shut
        finalize(connection, copy.close)  # also where nobody forgets it
        with self._lock:
            self._sockets[connection] = copy

    def set(self, connection: Any, seconds: float) -> None:
        """From now on; it takes the place of an earlier one."""
        with self._lock:
            self._due[connection] = monotonic() + seconds
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="jobq-deadlines", daemon=True)
                self._thread.start()

    def lift(self, connection: Any) -> None:
        with self._lock:
            self._due.pop(connection, None)

    def forget(self, connection: Any) -> None:
        """It is about to be closed."""
        with self._lock:
            self._due.pop(connection, None)
            if (copy := self._sockets.pop(connection, None)) is not None:
                copy.close()

    def close(self) -> None:
        """The end of the thread; deadlines that are set afterwards never come."""
        self._closed.set()

    def _look(self) -> None:
        while not self._closed.wait(LOOK_SECONDS):
            with self._lock:
                now = monotonic()
                for connection in [each for each, due in self._due.items() if due <= now]:
                    self._shut(connection)

    def _shut(self, connection: Any) -> None:
        del self._due[connection]
        if (copy := self._sockets.get(connection)) is not None:
            with suppress(OSError):  # the other side may have ended it
                copy.shutdown(socket.SHUT_RDWR)
