"""`jobq workers`."""

from __future__ import annotations

from jobq import admin
from jobq.report import WorkerRow
from jobq_cli.connect import connect
from jobq_cli.failures import say
from jobq_cli.options import AsJson, DatabaseUrl
from jobq_cli.output import Column, print_json, print_table
from jobq_cli.text import as_dict, load, span

COLUMNS: list[Column[WorkerRow]] = [
    Column("name", lambda row: f"{row.name} (leader)" if row.is_leader else row.name, shrinks=True),
    Column("host", lambda row: row.hostname or "-", shrinks=True),
    Column("pid", lambda row: str(row.pid or "-"), right=True),
    Column("version", lambda row: row.version or "-"),
    Column("queues", lambda row: "all" if row.queues is None else ", ".join(row.queues), shrinks=True),
    Column("running", lambda row: load(row.running, row.concurrency), right=True),
    Column(
        "left behind",
        lambda row: str(row.left_behind),
        right=True,
        style=lambda row: "yellow" if row.left_behind else "",
    ),
    Column("up", lambda row: span(row.read_at - row.started_at), right=True),
    Column("lease", lambda row: _lease(row), style=lambda row: "green" if row.alive else "red"),
]


def workers(database_url: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """List the workers, and how many jobs each of them runs.

    "20/20 +300": it runs 20, and has claimed 300 ahead, since its jobs are quick: they begin within half a second, or
    are given back.

    A worker whose lease ran out is gone or cut off: its jobs are about to be given to the others. The leader is the one
    that deletes jobs after their time and sums up what ended. Left behind are handlers that could not be stopped and
    still run.

    \b
    Example:
      jobq workers
    """
    with connect(database_url) as connection:
        found = admin.workers(connection)
    if as_json:
        print_json(as_dict(row) for row in found)
    elif found:
        print_table(found, COLUMNS)
    if not found:
        say("no workers (start one with: jobq run module:app)")


def _lease(row: WorkerRow) -> str:
    left = row.lease_until - row.read_at
    return f"{span(left)} left" if row.alive else f"over {span(-left)}"
