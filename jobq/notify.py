"""Notifications: which channel they take, how many a process may send, and what a worker reads in one.

They only wake workers early: a worker that hears nothing polls.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sa

from jobq.model import Position
from jobq.tables import NAME_RULE, SCHEMA

RATE = 50.0  # a second, for each queue of a process: commits that notify wait for one lock of the whole server
MOST_QUEUES = 10_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAME = NAME_RULE.removeprefix("^").removesuffix("$")
_WORD = re.compile(r"(taken|awaited)\|([0-9]{1,19})")
_PAYLOAD = re.compile(rf"({_NAME})\|([0-3])\|([0-9]{{1,11}})(?:\.([0-9]{{1,6}}))?")


def channel_of(connection: sa.Connection) -> str:
    """The channel of the jobs that this connection sees: the name of their schema, as schema_translate_map gives it."""
    translated = connection.get_execution_options().get("schema_translate_map") or {}
    return translated.get(SCHEMA) or SCHEMA


def parse(payload: str) -> Position | None:
    """Where a notification says that a job is due; None for what jobq has not written, anybody may NOTIFY."""
    match = _PAYLOAD.fullmatch(payload)
    if match is None:
        return None
    queue, priority, seconds, fraction = match.groups(default="")
    since = timedelta(seconds=int(seconds), microseconds=int(fraction.ljust(6, "0")))  # 11 digits end in the year 5138
    return Position(queue, int(priority), _EPOCH + since)


class Word(NamedTuple):
    """A notification that is not about a lane: `taken` names a worker, `awaited` a job."""

    what: str
    id: int


def word_in(payload: str) -> Word | None:
    """None for what jobq has not written. Untrusted: it is a reason to look, never more."""
    match = _WORD.fullmatch(payload)
    return None if match is None else Word(match[1], int(match[2]))


def channel_of_end(id: int) -> str:  # noqa: A002
    """Where the end of an awaited job is told: whoever waits for one hears of no other."""
    return f"jobq_ended_{id}"


class TokenBucket:
    """For each queue `rate` tokens a second, at most `burst` of them saved up. Safe in threads."""

    def __init__(self, rate: float = RATE, burst: float = RATE, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        self._levels: dict[str, tuple[float, float]] = {}  # tokens left, and when that was

    def take(self, queue: str) -> bool:
        """Whether there was a token, which is then gone."""
        with self._lock:
            now = self._clock()
            level, since = self._levels.pop(queue, (self._burst, now))
            level = min(self._burst, level + (now - since) * self._rate)
            taken = level >= 1.0
            self._levels[queue] = (level - taken, now)
            if (
                len(self._levels) > MOST_QUEUES
            ):  # forgets the queue that waited longest: a full bucket by now, or nearly
                del self._levels[next(iter(self._levels))]
            return taken


_bucket = TokenBucket()


def channel_for(connection: sa.Connection, queues: Iterable[str], *, bucket: TokenBucket = _bucket) -> str | None:
    """The channel to tell of new jobs in these queues; None: tell nobody.

    Nobody is told when each queue has used up its tokens, and where `channel_to_tell` says so.
    """
    channel = channel_to_tell(connection)
    if channel is None:
        return None
    taken = [bucket.take(queue) for queue in queues]
    return channel if any(taken) else None


def channel_to_tell(connection: sa.Connection) -> str | None:
    """The channel; None: tell nobody, with JOBQ_NOTIFY=0, and in a two-phase transaction, which PostgreSQL cannot
    prepare once it has notified."""
    if not is_on() or isinstance(connection.get_transaction(), sa.TwoPhaseTransaction):
        return None
    return channel_of(connection)


def is_on() -> bool:
    """Whether this process notifies at all."""
    return os.environ.get("JOBQ_NOTIFY") != "0"
