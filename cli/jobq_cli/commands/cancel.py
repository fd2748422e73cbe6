"""`jobq cancel`."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from jobq import admin
from jobq.model import State
from jobq.tables import jobs
from jobq_cli.choose import where
from jobq_cli.options import AsJson, DatabaseUrl, DryRun, JobIds, Kind, Queue, Yes
from jobq_cli.repair import Repair


class Open(StrEnum):
    """The states that a job can be cancelled from."""

    PENDING = "pending"
    RUNNING = "running"


OpenStates = Annotated[
    list[Open] | None,
    typer.Option("--state", metavar="STATE", help="Jobs that are pending (if only a queue or kind is given), running."),
]
Running = Annotated[
    bool, typer.Option("--running", help="Also cancel jobs that run: their workers stop them and record nothing.")
]


def cancel(
    job_ids: JobIds = None,
    state: OpenStates = None,
    queue: Queue = None,
    kind: Kind = None,
    running: Running = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Cancel waiting jobs, by id or in bulk: they never start. Running jobs are refused unless asked for.

    In bulk, jobs are counted first, and changed in chunks of 1000, each committed by itself.

    \b
    Examples:
      jobq cancel 43
      jobq cancel 43 --running
      jobq cancel --queue email --dry-run
    """
    states = {State(each) for each in state or [Open.PENDING]} | ({State.RUNNING} if running else set())
    given = state or queue is not None or kind is not None
    change = partial(admin.cancel_ids, running=State.RUNNING in states)
    repair = Repair("cancel", "cancelled", jobs, change, as_json=as_json)
    chosen = where(jobs, states, queue, kind) if given else []
    repair.run(database_url, job_ids or [], chosen, dry_run=dry_run, yes=yes)
