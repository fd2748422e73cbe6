"""`jobq check`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import sqlalchemy as sa
import typer

from jobq import urls
from jobq.checking import Fault, Report, Rows, Sources, check_rows, judge, named, project_of, read_sources
from jobq.checking.live import scheduled_faults
from jobq.handlers import Handler
from jobq.registry import App
from jobq_cli.connect import connect
from jobq_cli.failures import FAILURE, say
from jobq_cli.load import hint, load_app
from jobq_cli.options import AsJson, DatabaseUrl
from jobq_cli.output import print_json
from jobq_cli.progress import progress
from jobq_cli.text import as_dict, printable


def _places(values: list[str] | None) -> list[str]:
    for value in values or []:
        if (problem := hint(value)) is not None:
            raise typer.BadParameter(problem)
    return values or []


AppPlaces = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="APP",
        callback=_places,
        help="Where the apps are: module:attribute, as shop.jobs:app [that of JOBQ_APP or pyproject.toml].",
    ),
]
SourceOption = Annotated[
    list[Path] | None,
    typer.Option("--source", metavar="DIR", exists=True, help="Read this folder or file; may be given again."),
]
NoDatabase = Annotated[bool, typer.Option("--no-database", help="Look at the sources alone.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Also list what cannot be checked by reading.")]


def check(
    app: AppPlaces = None,
    source: SourceOption = None,
    no_database: NoDatabase = False,
    verbose: Verbose = False,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Check that every job that is enqueued has a handler, and args that fit it; exit code 1 when one has not.

    Reads the project's Python and SQL files (without tests; nothing is imported but the app), and, where a database URL
    is given or in the environment, the jobs that wait and the schedules there. Give all apps that share a database.

    \b
    Examples:
      jobq check shop.jobs:app
      jobq check shop.jobs:app --source src --source sql --no-database
    """
    places, folder = (app, None) if app else _configured()
    apps = [load_app(place, folder) for place in places]
    handlers = {kind: handler for each in apps for kind, handler in each.handlers.items()}
    for each in apps:
        each.resolve()
    roots = [path.absolute() for path in source or _projects(places)]
    sources = read_sources(roots, sys.path, here=Path.cwd())
    report = judge(sources.found, handlers, named(sys.modules, handlers.values()))
    rows = None if no_database else _rows(database_url, handlers)
    faults = sorted({*report.faults, *_scheduled(apps, handlers, report), *(rows.faults if rows else ())})
    scheduled = {periodic.job.kind for each in apps for periodic in each.schedules.values()}
    unused = sorted(handlers.keys() - report.used - scheduled)
    _tell(faults, report, rows, unused, as_json=as_json, schedules=_count_schedules(apps, report))
    _tell_aside(sources, report, verbose=verbose)
    if faults:
        raise typer.Exit(FAILURE)


def _configured() -> tuple[list[str], Path | None]:
    from jobq_cli.settings.gather import configured_app  # with the worker's options the worker would be loaded, always

    return configured_app("jobq check")


def _projects(places: Iterable[str]) -> list[Path]:
    """The folders of the apps' projects."""
    names = [place.partition(":")[0] for place in places]
    files = [(str(sys.modules[name].__file__), name) for name in names]
    return list(dict.fromkeys(project_of(file, name) for file, name in files))


def _rows(database_url: str | None, handlers: Mapping[str, Handler[..., Any]]) -> Rows | None:
    """What the database says; None where there is none: no server is started for this."""
    if database_url is None and urls.from_environment() is None:
        return None
    with connect(database_url) as connection:
        return _checked(connection, handlers)


def _checked(connection: sa.Connection, handlers: Mapping[str, Handler[..., Any]]) -> Rows:
    connection.rollback()
    connection = connection.execution_options(isolation_level="AUTOCOMMIT")  # no long transaction on a live database
    rows = Rows.of(connection)
    with progress(rows.total, chunk=10_000) as advance:
        check_rows(connection, rows, handlers, advance)
    return rows


def _scheduled(apps: Iterable[App], handlers: Mapping[str, Handler[..., Any]], report: Report) -> list[Fault]:
    """Those that the sources do not show."""
    known = {fault.kind for fault in report.faults}
    found = [fault for app in apps for fault in scheduled_faults(app.schedules, handlers)]
    return [fault for fault in found if fault.kind not in known]


def _count_schedules(apps: Iterable[App], report: Report) -> int:
    return max(report.schedules, sum(len(app.schedules) for app in apps))


def _tell(
    faults: list[Fault],
    report: Report,
    rows: Rows | None,
    unused: list[str],
    *,
    as_json: bool,
    schedules: int,
) -> None:
    waiting = None if rows is None else rows.checked
    if as_json:
        print_json(as_dict(fault) for fault in faults)
        counts = {"faults": len(faults), "enqueues": report.enqueues, "schedules": schedules, "waiting_jobs": waiting}
        print_json([{**counts, "unused": unused, "not_checked": len(report.unchecked)}])
        return
    for fault in faults:
        print(printable(str(fault)))
    counted = [_number(report.enqueues, "enqueue"), _number(schedules, "schedule")]
    counted += [] if waiting is None else [_number(waiting, "waiting job")]
    print(f"{_number(len(faults), 'fault')}: {', '.join(counted)}")
    if unused:
        say(f"never enqueued in these sources: {', '.join(unused)}")


def _tell_aside(sources: Sources, report: Report, *, verbose: bool) -> None:
    """What was left out, on stderr."""
    for line in sources.unread:
        say(line)
    if verbose:
        for each in report.unchecked:
            say(f"{each.path}:{each.line}: not checked: which kind this is only a run would tell")
    elif report.unchecked:
        say(f"not checked: {_number(len(report.unchecked), 'place')} whose kind only a run would tell (--verbose)")


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
