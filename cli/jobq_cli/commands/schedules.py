"""`jobq schedules`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated

import typer

from jobq import scheduling
from jobq.errors import JobqError
from jobq.periodic import PeriodicJob
from jobq.scheduling import ScheduleRow
from jobq_cli.connect import connect
from jobq_cli.failures import Failed, say
from jobq_cli.lazy import PLAIN
from jobq_cli.load import load_app
from jobq_cli.options import AsJson, DatabaseUrl
from jobq_cli.output import print_json, print_lines
from jobq_cli.text import ago, as_dict, moment

app = typer.Typer(**PLAIN)

Place = Annotated[
    str | None,
    typer.Option(
        "--app",
        metavar="MODULE:ATTRIBUTE",
        help="The application, for the next runs of its predicates [that of JOBQ_APP or pyproject.toml].",
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]


@app.callback(invoke_without_command=True)
def schedules(
    context: typer.Context, place: Place = None, database_url: DatabaseUrl = None, as_json: AsJson = False
) -> None:
    """List the schedules: when they run next, and what became of their ticks.

    A tick is enqueued; skipped, while the job of the one before waits or runs; or missed, when no worker was there.

    \b
    Examples:
      jobq schedules
      jobq schedules --app shop.jobs:app
      jobq schedules run nightly-report
    """
    if context.invoked_subcommand is not None:
        return
    periodic = load_app(place).schedules if place else _configured()
    with connect(database_url) as connection:
        found = scheduling.schedules(connection, known={name: each.schedule for name, each in periodic.items()})
    if as_json:
        print_json(as_dict(row) for row in found)
    else:
        print_lines(line for row in found for line in _lines(row))
    if not found:
        say("no schedules (workers publish those of their code when they start)")


@app.command()
def run(name: Name, database_url: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Enqueue the job of a schedule now; its next tick stays as it is.

    \b
    Example:
      jobq schedules run nightly-report
    """
    with connect(database_url) as connection:
        enqueued = scheduling.run_schedule(connection, name)
        connection.commit()
    if as_json:
        print_json([as_dict(enqueued)])
    elif enqueued.created:
        print(f"enqueued job {enqueued.id}")
    if not enqueued.created:
        raise Failed(
            f"nothing enqueued: job {enqueued.id} of this schedule waits or runs (see: jobq show {enqueued.id})"
        )


def _configured() -> Mapping[str, PeriodicJob]:
    """Those of the app that JOBQ_APP or a file names; the rows are listed all the same where it cannot be had."""
    from jobq_cli.settings.gather import gather  # with the worker's options the worker would be loaded, always

    settings = gather({})
    if settings["app"] is None:
        return {}
    try:
        return load_app(settings["app"], settings.app_folder).schedules
    except (Failed, JobqError) as error:
        say(f"{error}; what is in code alone is not shown")
        return {}


def _lines(row: ScheduleRow) -> Iterator[tuple[str, str]]:
    """A block for each schedule."""
    yield f"{row.name}{'' if row.kind == row.name else f' ({row.kind})'}", "bold"
    yield f"  {row.explanation}, {row.timezone}, catch_up={row.catch_up}", ""
    yield f"  next  {', '.join(map(_wall, row.next_runs)) or 'in code alone (see: --app)'}", ""
    last = "none yet" if row.last_fate is None else f"{moment(row.last_tick)} {row.last_fate}"
    yield f"  last  {last}{'' if row.last_tick is None else f', {ago(row.last_tick, row.read_at)}'}", ""
    yield f"  ticks {row.enqueued} enqueued, {row.skipped} skipped, {row.missed} missed", ""
    if not row.held:
        yield "  unused: no live worker's code has it, so nobody fires it", "yellow"


def _wall(run: datetime) -> str:
    """By the clocks of the schedule's zone."""
    return f"{run:%a %Y-%m-%d %H:%M{':%S' if run.second else ''} %Z}"
