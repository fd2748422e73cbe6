"""`jobq list`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import chain, islice
from typing import Annotated, Any

import sqlalchemy as sa
import typer
from sqlalchemy.exc import DBAPIError

from jobq import admin
from jobq.faults import sqlstate
from jobq.model import Job, State
from jobq_cli.choose import source
from jobq_cli.connect import connect
from jobq_cli.failures import Failed, say
from jobq_cli.filters import Filters
from jobq_cli.options import AsJson, DatabaseUrl
from jobq_cli.output import SAMPLE, Column, print_json, print_table
from jobq_cli.spread import spread
from jobq_cli.styles import STATE_STYLES
from jobq_cli.text import ago, as_dict, span

PATIENCE = timedelta(seconds=60)
QUERY_CANCELED = "57014"
BRIEF = ("args", "meta", "errors", "checkpoint", "result")  # not read for a listing
STATE_HELP = f"Only jobs in this state ({', '.join(State)}); may be given again."
States = Annotated[list[State] | None, typer.Option("--state", metavar="STATE", help=STATE_HELP)]


class Order(StrEnum):
    """By id: that is when they were enqueued."""

    NEWEST = "newest"
    OLDEST = "oldest"


OrderBy = Annotated[Order, typer.Option("--order", metavar="newest|oldest", help="Which come first.")]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10**9, help="At most so many jobs.")]


@spread
def list_jobs(
    *,
    state: States = None,
    filters: Filters,
    order: OrderBy = Order.NEWEST,
    limit: Limit = 50,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, the newest first.

    Args are not shown here, they may be confidential: see `jobq show ID`.

    \b
    Examples:
      jobq list --state dead --queue email
      jobq list --state dead --newer 2h --error timeout
      jobq list --arg tenant.id=7 --arg lang=en
      jobq list --state pending --state running --limit 1000 --json
    """
    states = set(state or State)
    oldest_first = order is Order.OLDEST
    with connect(database_url) as connection:
        admin.give_up_after(connection, PATIENCE)
        now = connection.scalar(sa.select(sa.func.now()))
        predicates = filters.where(source(states), states)
        counted = _Counted(admin.each_brief(connection, *predicates, limit=limit, oldest_first=oldest_first))
        with _told_if_too_slow():
            if as_json:
                print_json(_brief(job) for job in counted)
            else:
                jobs = iter(counted)
                first = list(islice(jobs, SAMPLE))
                print_table(chain(first, jobs), _columns(now, tells=any(job.progress for job in first)))
        if not counted.seen:
            _note_empty(admin.queue_names(connection), filters.queue)
        elif counted.seen == limit:
            say(f"the {order} {limit} only (more with --limit)")


@contextmanager
def _told_if_too_slow() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        if sqlstate(error) != QUERY_CANCELED:
            raise
        more = "look for less with --state, --queue, --kind or --newer"
        raise Failed(f"gave up after {span(PATIENCE)}, there are too many jobs to look through: {more}") from error


class _Counted:
    """Jobs on their way to the output, counted."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs = jobs
        self.seen = 0

    def __iter__(self) -> Iterator[Job]:
        for job in self._jobs:
            self.seen += 1
            yield job


def _columns(now: datetime | None, *, tells: bool) -> list[Column[Job]]:
    """`tells`: one of the first jobs has said how far it is."""
    at = now or datetime.now().astimezone()
    progress: list[Column[Job]] = [Column("progress", _progress, shrinks=True)] if tells else []
    return [
        Column("id", lambda job: str(job.id), right=True),
        Column("state", lambda job: job.state, style=lambda job: STATE_STYLES[job.state]),
        Column("queue", lambda job: job.queue, shrinks=True),
        Column("kind", lambda job: job.kind, shrinks=True),
        Column("failed", lambda job: _failed(job), right=True),
        Column("when", lambda job: _when(job, at)),
        *progress,
        Column("outcome", lambda job: job.outcome or "", shrinks=True),
    ]


def _progress(job: Job) -> str:
    """`40 % page 4 of 10`."""
    return "" if job.progress is None else f"{int(job.progress.fraction * 100)} % {job.progress.message}".rstrip()


def _failed(job: Job) -> str:
    """`2/5`; without the bound where the row leaves it to the handler."""
    return f"{job.failures}/{job.max_attempts}" if job.max_attempts else str(job.failures)


def _when(job: Job, now: datetime) -> str:
    """What is told of a job's time depends on its state."""
    if job.state is State.PENDING:
        return f"due {ago(job.run_at, now)}"
    if job.state is State.RUNNING:
        return f"since {ago(job.attempted_at, now).removesuffix(' ago')}"
    return ago(job.finished_at, now)


def _brief(job: Job) -> dict[str, Any]:
    return {name: value for name, value in as_dict(job).items() if name not in BRIEF}


def _note_empty(known: list[str], queue: str | None) -> None:
    if queue is not None and queue not in known:
        say(f"no queue {queue!r}: known are {', '.join(known) or 'none yet'}")
    else:
        say("no such jobs")
