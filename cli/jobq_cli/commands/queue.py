"""`jobq queue`: what the fleet's queues are set to."""

from __future__ import annotations

from typing import Annotated

import typer

from jobq import queueing
from jobq.queue_settings import HIGHEST_WEIGHT, MOST_SLOTS
from jobq.queueing import QueueRow
from jobq_cli.connect import connect
from jobq_cli.failures import say
from jobq_cli.known import note_unknown_queue
from jobq_cli.lazy import PLAIN
from jobq_cli.options import AsJson, DatabaseUrl, QueueName
from jobq_cli.output import Column, print_json, print_table
from jobq_cli.text import as_dict, pause_end

HELP = """What the queues are set to, for the whole fleet.

\b
Examples:
  jobq queue list
  jobq queue set email --weight 3 --concurrency 4
"""
app = typer.Typer(**PLAIN, help=HELP)

COLUMNS: list[Column[QueueRow]] = [
    Column("queue", lambda row: row.name, shrinks=True),
    Column("weight", lambda row: str(row.weight), right=True),
    Column("limit", lambda row: _limit(row)),
    Column("running", lambda row: "-" if row.concurrency is None else f"{row.taken}/{row.concurrency}", right=True),
    Column("paused", lambda row: _paused(row), shrinks=True, style=lambda row: "yellow" if row.paused_until else ""),
]
Weight = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, max=HIGHEST_WEIGHT, help="Its share while other queues have work too."),
]
Fifo = Annotated[
    bool | None, typer.Option("--fifo/--no-fifo", help="One job at a time, in order; or no limit.", show_default=False)
]
Concurrency = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, max=MOST_SLOTS, help="So many jobs at a time in the whole fleet; 0: no limit."),
]


@app.command("list")
def list_queues(database_url: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """List the queues that code declares, or that were set or paused by hand.

    \b
    Example:
      jobq queue list
    """
    with connect(database_url) as connection:
        found = queueing.queues(connection)
    if as_json:
        print_json(as_dict(row) for row in found)
    elif found:
        print_table(found, COLUMNS)
    if not found:
        say("no queue is set (app.queue declares one, jobq queue set sets one)")


@app.command("set")
def set_queue(
    queue: QueueName,
    weight: Weight = None,
    fifo: Fifo = None,
    concurrency: Concurrency = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Set what every worker obeys, whatever its code says, within 5 seconds. What is left out stays.

    \b
    Examples:
      jobq queue set email --weight 3 --concurrency 4
      jobq queue set apollo --fifo
    """
    if weight is None and fifo is None and concurrency is None:
        raise typer.BadParameter("give --weight, --fifo, --no-fifo or --concurrency")
    if fifo and concurrency:
        raise typer.BadParameter("--fifo is one job at a time already; it does not go with --concurrency")
    with connect(database_url) as connection:
        note_unknown_queue(connection, queue)
        queueing.set_queue(connection, queue, weight=weight, fifo=fifo, concurrency=concurrency)
        connection.commit()
        row = next(row for row in queueing.queues(connection) if row.name == queue)
    if as_json:
        print_json([as_dict(row)])
    else:
        print(f"queue {queue}: weight {row.weight}, {_limit(row)}")


def _limit(row: QueueRow) -> str:
    if row.fifo:
        return "fifo"
    return "no limit" if row.concurrency is None else f"concurrency {row.concurrency}"


def _paused(row: QueueRow) -> str:
    if row.paused_until is None:
        return ""
    return f"{pause_end(row.paused_until)}{f': {row.pause_reason}' if row.pause_reason else ''}"
