"""A network between worker and server that can be cut, held up or made to swallow everything."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum

import sqlalchemy as sa

ANSWERED = b"Z\x00\x00\x00\x05I"  # ReadyForQuery, idle: the server sends it when a statement in autocommit is committed
BLOCK = 65_536


class Fate(Enum):
    """What becomes of some bytes."""

    PASS = "pass"
    CUT = "cut"  # the connection is closed, the bytes are lost
    HOLD = "hold"  # they wait for `release`


class Proxy:
    """Forwards TCP connections to a server. `on_request` and `on_reply` see all bytes, and say what becomes of them."""

    def __init__(self, url: str) -> None:
        target = sa.make_url(url)
        self._target = (str(target.host), int(target.port or 5432))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = target.set(port=self._listener.getsockname()[1]).render_as_string(hide_password=False)
        self.on_request: Callable[[bytes], Fate] = lambda _: Fate.PASS
        self.on_reply: Callable[[bytes], Fate] = lambda _: Fate.PASS
        self.held = threading.Event()
        self.has_swallowed = threading.Event()
        self._released = threading.Event()
        self._is_open = threading.Event()
        self._is_open.set()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def swallow(self) -> None:
        """From now on nothing arrives any more, and nobody is told."""
        self.has_swallowed.clear()
        self._is_open.clear()

    def heal(self) -> None:
        """What was swallowed arrives now, as TCP would send it again."""
        self._is_open.set()

    def release(self) -> None:
        """Let go of what is held."""
        self._released.set()

    def close(self) -> None:
        self._released.set()
        self._is_open.set()
        for each in [self._listener, *self._sockets]:
            _close(each)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                self._sockets += [client, server]
                for source, sink, side in ((client, server, "on_request"), (server, client, "on_reply")):
                    threading.Thread(target=self._pump, args=[source, sink, side], daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, side: str) -> None:
        with suppress(OSError):
            while data := source.recv(BLOCK):
                if not self._is_open.is_set():
                    self.has_swallowed.set()
                    self._is_open.wait()
                fate = getattr(self, side)(data)
                if fate is Fate.CUT:
                    break
                if fate is Fate.HOLD:
                    self.held.set()
                    self._released.wait()
                sink.sendall(data)
            self._is_open.wait()
        _close(source)
        _close(sink)


def _close(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


@contextmanager
def proxy_to(url: str) -> Iterator[Proxy]:
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()


def is_claim_of(kind: str, reply: bytes) -> bool:
    """Whether a reply is the whole, committed answer to a claim that got jobs of this kind."""
    return reply.endswith(ANSWERED) and b"max_attempts\x00" in reply and kind.encode() in reply
