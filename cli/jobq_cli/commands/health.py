"""`jobq health`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import Annotated

import typer
from sqlalchemy.exc import DBAPIError

from jobq import inspection
from jobq.diagnosis import Check, Health
from jobq.statements.patience import answer_within
from jobq_cli.connect import Target, raw_connect, target
from jobq_cli.durations import parse_duration
from jobq_cli.failures import FAILURE, Failed, said_by_database
from jobq_cli.options import AsJson, DatabaseUrl
from jobq_cli.output import print_json, print_lines

MinWorkers = Annotated[
    int, typer.Option(metavar="N", min=0, max=inspection.MOST_WORKERS, help="So many workers have to be alive.")
]
MaxAge = Annotated[
    timedelta | None,
    typer.Option(metavar="SPAN", parser=parse_duration, help="No due job may wait longer, such as 5m."),
]
Timeout = Annotated[
    timedelta | None,
    typer.Option(metavar="SPAN", parser=parse_duration, help="The database has so long to answer [10s]."),
]


def health(
    min_workers: MinWorkers = 1,
    max_age: MaxAge = None,
    timeout: Timeout = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Check that jobs are run: exit 0 when all is well, 1 when something is not.

    The database answers, its tables are right, workers live, no due job waits too long (with --max-age), and each queue
    and kind with due jobs has a live worker. One line a check; what needs something that failed is not checked.

    \b
    Examples:
      jobq health
      jobq health --min-workers 2 --max-age 5m
      jobq health --json | jq 'select(.ok | not)'
    """
    chosen, timeout = target(database_url), timeout or timedelta(seconds=10)
    found = _within(timeout, lambda: _look(chosen, min_workers, max_age, timeout))
    if as_json:
        print_json({"check": check.name, "ok": check.is_ok, "problem": check.problem} for check in found.checks)
    else:
        print_lines(map(_line, found.checks))
    if not found.is_ok:
        raise typer.Exit(FAILURE)


def _within(timeout: timedelta, look: Callable[[], Health]) -> Health:
    """In a thread that can be left: a server may accept and say nothing, and psycopg waits for it without end."""
    found: Future[Health] = Future()

    def run() -> None:
        try:
            found.set_result(look())
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return found.result(timeout.total_seconds())
    except TimeoutError:
        problem = f"no answer within {timeout.total_seconds():g} s: is it reachable, are its tables locked?"
        return Health((Check("database", problem),))


def _look(chosen: Target, min_workers: int, max_age: timedelta | None, timeout: timedelta) -> Health:
    try:
        with raw_connect(chosen) as connection:
            connection.execute(answer_within(), {"limit": f"{timeout.total_seconds() * 1000:.0f}"})
            found = inspection.health(connection, min_workers=min_workers, max_age=max_age)
    except Failed as error:
        return Health((Check("database", str(error)),))
    except DBAPIError as error:
        return Health((Check("database", said_by_database(error)),))
    return Health((Check("database"), *found.checks))


def _line(check: Check) -> tuple[str, str]:
    said = "ok" if check.problem is None else f"FAILED: {check.problem}"
    return f"{check.name:<9} {said}", "" if check.is_ok else "red"
