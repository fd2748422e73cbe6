"""`jobq top`."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import sqlalchemy as sa
import typer

from jobq.overview import Overview, overview
from jobq_cli.connect import connect
from jobq_cli.durations import parse_duration
from jobq_cli.failures import say
from jobq_cli.options import AsJson, DatabaseUrl, Queue
from jobq_cli.output import print_json
from jobq_cli.text import as_dict
from jobq_cli.top.frame import Size, frame, unknown
from jobq_cli.top.screen import blocks, draw, is_live, plain, screen, size
from jobq_cli.watch import again, keys

SHORTEST = timedelta(milliseconds=100)


def _a_pause(value: timedelta | None) -> timedelta | None:
    if value is not None and value < SHORTEST:
        raise typer.BadParameter("at least 0.1s: each look is work for the database")
    return value


Every = Annotated[
    timedelta | None,
    typer.Option(metavar="SPAN", parser=parse_duration, callback=_a_pause, help="Look so often [1s]."),
]
Once = Annotated[bool, typer.Option("--once", help="Print it once, and end.")]


def top(
    queue: Queue = None,
    every: Every = None,
    once: Once = False,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Watch the queues, the workers and what they run, with progress bars; q or Ctrl-C ends it.

    The jobs that have run longest come first. What runs is looked for among the first 10500 due jobs of each queue and
    priority, so a look costs the same however many wait. In a pipe, with --once and as JSON it is printed once.

    \b
    Examples:
      jobq top
      jobq top --queue email --every 5s
      jobq top --json | jq '.jobs[] | select(.runs_for_seconds > 60)'
    """
    with connect(database_url) as connection:
        if as_json or once or not is_live():
            _print(overview(connection, queue=queue), queue, as_json=as_json)
        else:
            _watch(connection, queue, every or timedelta(seconds=1))


def _watch(connection: sa.Connection, queue: str | None, every: timedelta) -> None:
    with screen(), keys() as wait:
        for _ in again(connection, every, wait):
            draw(frame(overview(connection, queue=queue), size(), queue=queue))


def _print(found: Overview, queue: str | None, *, as_json: bool) -> None:
    if as_json:
        print_json([_as_json(found)])
    else:
        print(plain(frame(found, Size(blocks=blocks()), queue=queue)))
    if queue is not None and not found.stats.queues:
        say(unknown(queue))


def _as_json(found: Overview) -> dict[str, Any]:
    members = [{**as_dict(each.worker), "silent_for_seconds": each.silent_for} for each in found.members]
    return {
        "at": found.at,
        "running": found.running,
        "queues": [as_dict(each) for each in found.stats.queues],
        "workers": members,
        "jobs": [as_dict(each) for each in found.jobs],
    }
