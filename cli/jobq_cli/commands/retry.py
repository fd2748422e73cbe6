"""`jobq retry`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from jobq import admin
from jobq.model import State
from jobq.tables import finished_jobs
from jobq_cli.choose import where
from jobq_cli.options import AsJson, DatabaseUrl, DryRun, JobIds, Kind, Queue, Yes
from jobq_cli.repair import Repair


class Ended(StrEnum):
    """The states that a job can be retried from."""

    DEAD = "dead"
    DONE = "done"
    CANCELLED = "cancelled"


EndedStates = Annotated[
    list[Ended] | None,
    typer.Option(
        "--state", metavar="STATE", help="Jobs that are dead (if only a queue or kind is given), done, cancelled."
    ),
]


def retry(
    job_ids: JobIds = None,
    state: EndedStates = None,
    queue: Queue = None,
    kind: Kind = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Run ended jobs again, by id or in bulk; failures count from zero, the history of errors stays.

    In bulk, jobs are counted first, and changed in chunks of 1000, each committed by itself.

    \b
    Examples:
      jobq retry 42 43
      jobq retry --state dead --kind email.send --dry-run
      jobq retry --state dead --queue email --yes
    """
    states = {State(each) for each in state or [Ended.DEAD]}
    given = state or queue is not None or kind is not None
    repair = Repair("retry", "retried", finished_jobs, admin.retry_ids, as_json=as_json)
    chosen = where(finished_jobs, states, queue, kind) if given else []
    repair.run(database_url, job_ids or [], chosen, dry_run=dry_run, yes=yes)
