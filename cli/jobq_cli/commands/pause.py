"""`jobq pause` and `jobq resume`."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from jobq import queueing
from jobq_cli.connect import connect
from jobq_cli.durations import parse_duration
from jobq_cli.failures import say
from jobq_cli.known import note_unknown_queue
from jobq_cli.options import AsJson, DatabaseUrl, QueueName
from jobq_cli.output import print_json
from jobq_cli.text import pause_end

Length = Annotated[
    timedelta | None,
    typer.Option("--for", metavar="SPAN", parser=parse_duration, help="For how long [until resumed], such as 90s, 5m."),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for whoever looks.")]


def pause(
    queue: QueueName,
    length: Length = None,
    reason: Reason = "",
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Let a queue stand still: no worker takes a job of it. Jobs that run may end.

    A pause that is there already gets this length and reason.

    \b
    Examples:
      jobq pause email --for 1h --reason "the provider is down"
      jobq pause email
    """
    with connect(database_url) as connection:
        note_unknown_queue(connection, queue)
        until = queueing.pause(connection, queue, length, reason=reason)
        connection.commit()
    if as_json:
        print_json([{"queue": queue, "paused_until": until, "pause_reason": reason or None}])
    else:
        print(f"queue {queue} is paused {pause_end(until)}")


def resume(queue: QueueName, database_url: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """End a queue's pause: its jobs start again at once.

    \b
    Example:
      jobq resume email
    """
    with connect(database_url) as connection:
        resumed = queueing.resume(connection, queue)
        connection.commit()
    if as_json:
        print_json([{"queue": queue, "resumed": resumed}])
    elif resumed:
        print(f"queue {queue} goes on")
    else:
        say(f"queue {queue} was not paused (see: jobq queue list)")
