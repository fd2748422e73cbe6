"""Words about a queue's name that may be mistyped."""

from __future__ import annotations

import sqlalchemy as sa

from jobq import admin
from jobq_cli.failures import say


def note_unknown_queue(connection: sa.Connection, queue: str) -> None:
    """What is said of it holds all the same: it may be the queue of code that is not deployed yet."""
    known = admin.queue_names(connection)
    if queue not in known:
        say(f"no job, handler or setting names queue {queue} (known: {', '.join(known) or 'none'})")
