"""A network that kills the worker behind it at a named message of the protocol, before or after the server has it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fleet import Member
from proxy import Fate, proxy_to

Match = Callable[[bytes], bool]
COMMITTED = b"COMMIT\x00"  # the tag of a CommandComplete


def is_claim(reply: bytes) -> bool:
    """An answer with a job in it: its kind as the value of a column."""
    return b"\x00\x00\x00\x04work" in reply


def is_completion(request: bytes) -> bool:
    return b"INSERT INTO jobq.finished_jobs" in request


class OwnCommit:
    """The COMMIT of the connection that has written into `books`: each connection has its threads in the proxy."""

    def __init__(self) -> None:
        self._of_this = threading.local()
        self.sent = threading.Event()

    def asked(self, request: bytes) -> bool:
        if b"INSERT INTO books" in request:
            self._of_this.has_written = True
        is_it = getattr(self._of_this, "has_written", False) and b"COMMIT" in request
        if is_it:
            self.sent.set()
        return is_it

    def answered(self, reply: bytes) -> bool:
        return self.sent.is_set() and COMMITTED in reply


@dataclass
class Trap:
    """`url`: where the victim is to connect to; it is killed once at the first message that matches.

    The message itself arrives all the same, from a process that is gone (`arrives`), or is lost, with all that is on
    its way in other connections. `kills` False: nobody is killed, that one connection is cut.
    """

    request: Match | None = None
    reply: Match | None = None
    arrives: bool = False
    kills: bool = True
    url: str = ""
    victim: Member | None = None
    sprung: threading.Event = field(default_factory=threading.Event)

    def on_request(self, data: bytes) -> Fate:
        return self._judge(self.request, data)

    def on_reply(self, data: bytes) -> Fate:
        return self._judge(self.reply, data)

    def _judge(self, match: Match | None, data: bytes) -> Fate:
        if self.sprung.is_set():
            return Fate.CUT if self.kills and not self.arrives else Fate.PASS
        if match is None or self.victim is None or not match(data):
            return Fate.PASS
        self.sprung.set()
        if self.kills:
            os.kill(self.victim.pid, signal.SIGKILL)
        return Fate.PASS if self.arrives else Fate.CUT


@contextmanager
def set_up(trap: Trap, url: str) -> Iterator[Trap]:
    with proxy_to(url) as proxy:
        trap.url = proxy.url
        proxy.on_request, proxy.on_reply = trap.on_request, trap.on_reply
        yield trap
