"""Pausing queues, and setting what the fleet obeys, in the caller's transaction; the command line calls the same.

Claims read the settings in their own statement: a pause or a limit holds in the whole fleet from its commit on.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from jobq import checks
from jobq.bind import AsyncBind, Bind, connection_of, over
from jobq.errors import OptionError
from jobq.model import Position
from jobq.notify import channel_of
from jobq.queue_settings import HIGHEST_WEIGHT, MOST_SLOTS
from jobq.statements import queues as statements
from jobq.statements import slots as slot_statements
from jobq.store.announcing import announce

PRIORITIES = (0, 1, 2, 3)
FROM_THE_START = datetime(1970, 1, 1, tzinfo=UTC)
UNTIL_RESUMED = checks.LATEST  # not 'infinity', which no Python datetime can be


@dataclass(frozen=True, slots=True)
class QueueRow:
    """What the database says of a queue. `concurrency`: how many jobs may run at a time (1 with `fifo`), None: any.

    `taken`: how many run, where there is a limit. `paused_until` None: not paused; a pause without an end lasts until
    the year 9000.
    """

    name: str
    weight: int
    fifo: bool
    concurrency: int | None
    taken: int
    paused_until: datetime | None
    pause_reason: str | None


def pause(session: Bind, queue: str, /, duration: timedelta | None = None, *, reason: str = "") -> datetime | None:
    """Let a queue stand still for `duration`, or until `resume`: no worker takes a job of it; what runs may end.

    A pause that is there already gets this length and reason. Returns when it ends, None: when it is resumed.

    Raises: OptionError, OptionTypeError.
    """
    connection = connection_of(session, "pause")
    checks.typed("reason", reason, str, "a str")
    seconds = None if duration is None else checks.span("duration", duration).total_seconds()
    binds = {
        "the_queue": checks.name("queue", queue),
        "pause_seconds": seconds,
        "reason": reason or None,
        "last": UNTIL_RESUMED,
    }
    row = connection.execute(statements.pause_until(), binds).one()
    _tell(connection, queue)  # workers learn when it ends
    return None if duration is None else row.paused_until


def resume(session: Bind, queue: str, /) -> bool:
    """End a queue's pause; False: there was none. Raises: OptionError, OptionTypeError."""
    connection = connection_of(session, "resume")
    found = connection.execute(statements.resume(), {"the_queue": checks.name("queue", queue)}).first()
    if found is not None:
        _tell(connection, queue)
    return found is not None


def set_queue(
    session: Bind,
    queue: str,
    /,
    *,
    weight: int | None = None,
    fifo: bool | None = None,
    concurrency: int | None = None,
) -> None:
    """Set what the whole fleet obeys from within 5 seconds on, whatever the code says; what is left out stays.

    `fifo` True: one job at a time, in order; False: no limit. `concurrency`: so many at a time, 0: no limit.

    Raises: OptionError, OptionTypeError.
    """
    connection = connection_of(session, "set_queue")
    binds: dict[str, Any] = {"name": checks.name("queue", queue)}
    if weight is not None:
        binds["weight"] = checks.whole("weight", weight, 1, HIGHEST_WEIGHT)
    if fifo is not None or concurrency is not None:
        binds |= _limit(fifo, concurrency)
    if len(binds) == 1:
        raise OptionError("set_queue: give a weight, fifo or concurrency, nothing is to be set")
    connection.execute(statements.set_queue(weight="weight" in binds, limit="fifo" in binds), binds)
    connection.execute(slot_statements.make_slots())


def queues(session: Bind, /) -> list[QueueRow]:
    """What is set for the fleet's queues, by name: those that the code declares, and those set or paused by hand."""
    rows = connection_of(session, "queues").execute(statements.read_queues())
    return [_row(row) for row in rows]


def pause_async(
    session: AsyncBind, queue: str, /, duration: timedelta | None = None, *, reason: str = ""
) -> Coroutine[Any, Any, datetime | None]:
    """`pause` for an AsyncSession or AsyncConnection."""
    return over(session, lambda bind: pause(bind, queue, duration, reason=reason), called="pause")


def resume_async(session: AsyncBind, queue: str, /) -> Coroutine[Any, Any, bool]:
    """`resume` for an AsyncSession or AsyncConnection."""
    return over(session, resume, queue, called="resume")


def set_queue_async(
    session: AsyncBind,
    queue: str,
    /,
    *,
    weight: int | None = None,
    fifo: bool | None = None,
    concurrency: int | None = None,
) -> Coroutine[Any, Any, None]:
    """`set_queue` for an AsyncSession or AsyncConnection."""
    values: dict[str, Any] = {"weight": weight, "fifo": fifo, "concurrency": concurrency}
    return over(session, lambda bind: set_queue(bind, queue, **values), called="set_queue")


def queues_async(session: AsyncBind, /) -> Coroutine[Any, Any, list[QueueRow]]:
    """`queues` for an AsyncSession or AsyncConnection."""
    return over(session, queues, called="queues")


def _limit(fifo: bool | None, concurrency: int | None) -> dict[str, Any]:
    """`fifo` is never NULL once something was said by hand: then no code's default counts any more."""
    if fifo is not None:
        checks.typed("fifo", fifo, bool, "a bool")
    if concurrency is not None:
        checks.whole("concurrency", concurrency, 0, MOST_SLOTS)
    if fifo and concurrency:
        raise OptionError("fifo and concurrency: fifo is one job at a time already, give one of them")
    return {"fifo": bool(fifo), "concurrency": concurrency or None}


def _tell(connection: sa.Connection, queue: str) -> None:
    """Have workers look at the whole queue: their cursors may have gone on while it was paused."""
    everywhere = [Position(queue, priority, FROM_THE_START) for priority in PRIORITIES]
    announce(connection, everywhere, channel=channel_of(connection))


def _row(row: sa.Row[Any]) -> QueueRow:
    limit = 1 if row.fifo else row.concurrency
    return QueueRow(row.name, row.weight or 1, bool(row.fifo), limit, row.taken, row.paused_until, row.pause_reason)
