"""`jobq retry`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from jobq import admin
from jobq.model import State
from jobq.tables import finished_jobs
from jobq_cli.filters import Filters
from jobq_cli.repair import Manner, Repair
from jobq_cli.spread import spread


class Ended(StrEnum):
    """The states that a job can be retried from."""

    DEAD = "dead"
    DONE = "done"
    CANCELLED = "cancelled"


EndedStates = Annotated[
    list[Ended] | None,
    typer.Option("--state", metavar="STATE", help="Jobs that are dead (if no state is given), done, cancelled."),
]


@spread
def retry(*, state: EndedStates = None, filters: Filters, manner: Manner) -> None:
    """Run ended jobs again, by id or in bulk; failures count from zero, the history of errors stays.

    In bulk, jobs are counted first, and changed in chunks of 1000, each committed by itself.

    \b
    Examples:
      jobq retry 42 43
      jobq retry --state dead --kind email.send --dry-run
      jobq retry --queue email --newer 2h --error timeout --yes
      jobq retry --arg company_id=7
    """
    states = {State(each) for each in state or [Ended.DEAD]}
    repair = Repair("retry", "retried", finished_jobs, admin.retry_ids, states)
    repair.run(filters, manner, with_state=bool(state))
