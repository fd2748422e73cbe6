"""`jobq cancel`."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from jobq import admin
from jobq.model import State
from jobq.tables import jobs
from jobq_cli.filters import Filters
from jobq_cli.repair import Manner, Repair
from jobq_cli.spread import spread


class Open(StrEnum):
    """The states that a job can be cancelled from."""

    PENDING = "pending"
    RUNNING = "running"


OpenStates = Annotated[
    list[Open] | None,
    typer.Option("--state", metavar="STATE", help="Jobs that are pending (if no state is given), running."),
]
Running = Annotated[
    bool, typer.Option("--running", help="Also cancel jobs that run: their workers stop them and record nothing.")
]


@spread
def cancel(*, state: OpenStates = None, running: Running = False, filters: Filters, manner: Manner) -> None:
    """Cancel waiting jobs, by id or in bulk: they never start. Running jobs are refused unless asked for.

    In bulk, jobs are counted first, and changed in chunks of 1000, each committed by itself.

    \b
    Examples:
      jobq cancel 43
      jobq cancel 43 --running
      jobq cancel --queue email --older 2d --dry-run
      jobq cancel --kind email.send --arg to=a@b.c --yes
    """
    states = {State(each) for each in state or [Open.PENDING]} | ({State.RUNNING} if running else set())
    change = partial(admin.cancel_ids, running=State.RUNNING in states)
    repair = Repair("cancel", "cancelled", jobs, change, states)
    repair.run(filters, manner, with_state=bool(state))
