"""How long connections wait in a network that swallows packets, by the kernel's table of sockets."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

TABLE = Path("/proc/net/tcp")  # see proc(5); of IPv4 alone
ESTABLISHED = "01"
LOOKS_EVERY_SECONDS = 0.25


class Waits:
    """Of connections to one port, from when it is dark.

    One waits since bytes of it were first seen without an acknowledgement: that is when its call began. One that has
    sent nothing waits since the darkness began.
    """

    def __init__(self, port: int, own_ports: Collection[int]) -> None:
        self._port = port
        self._began = time.monotonic()
        self._sent: dict[int, float] = {}
        self._left = set(own_ports)
        self.seconds: dict[int, float] = {}  # by its own port, of each as it was last seen established

    def look(self) -> None:
        """Often: a wait is found to have begun when it is seen."""
        now, queued = time.monotonic(), queued_to(self._port)
        self._left &= queued.keys()
        for each in self._left:
            if queued[each]:
                self._sent.setdefault(each, now)
            self.seconds[each] = now - self._sent.get(each, self._began)

    def still(self, longer_than: float) -> set[int]:
        """Those that have waited so long and still do."""
        self.look()
        return {each for each in self._left if self.seconds[each] > longer_than}

    @property
    def longest(self) -> float:
        """Of those that have sent something."""
        return max((self.seconds[each] for each in self._sent), default=0.0)


@contextmanager
def waiting(port: int, own_ports: Collection[int]) -> Iterator[Waits]:
    """Looked at by a thread, for the block."""
    waits, is_over = Waits(port, own_ports), threading.Event()

    def watch() -> None:
        while not is_over.wait(LOOKS_EVERY_SECONDS):
            waits.look()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield waits
    finally:
        is_over.set()
        thread.join()


def queued_to(port: int) -> dict[int, int]:
    """By its own port of each established connection to this one: how many bytes are not acknowledged."""
    found = {}
    for line in TABLE.read_text().splitlines()[1:]:
        _, own, other, state, queues, *_ = line.split()
        if state == ESTABLISHED and _hexadecimal(other, 1) == port:
            found[_hexadecimal(own, 1)] = _hexadecimal(queues, 0)
    return found


def _hexadecimal(pair: str, part: int) -> int:
    return int(pair.split(":")[part], 16)
