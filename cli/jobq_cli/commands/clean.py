"""`jobq clean`."""

from __future__ import annotations

import time
from typing import Annotated

import sqlalchemy as sa
import typer

from jobq.cleaner import MOST, Cleaning
from jobq.store.cleaning import count_expired
from jobq_cli.connect import connect
from jobq_cli.options import AsJson, DatabaseUrl
from jobq_cli.output import print_json
from jobq_cli.progress import progress

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count the jobs that would be deleted.")]


def clean(dry_run: DryRun = False, database_url: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Delete ended jobs that have been kept for their time: done ones 24 hours, dead and cancelled ones 7 days.

    A handler or a job may say another time with keep=. Workers do this by themselves; this is for an installation
    without workers, or for a disk that is full now. In chunks of 10000, each committed by itself, so that nobody waits.

    \b
    Examples:
      jobq clean --dry-run
      jobq clean
    """
    with connect(database_url) as connection:
        expired = count_expired(connection)
        connection.rollback()
        deleted = 0 if dry_run else _delete(connection, expired)
    if as_json:
        print_json([{"expired": expired, "deleted": deleted, "dry_run": dry_run}])
    elif dry_run:
        print(f"would delete {_jobs(expired)}")
    else:
        print(f"deleted {_jobs(deleted)}")


def _delete(connection: sa.Connection, expired: int) -> int:
    cleaning, deleted = Cleaning(), 0
    connection = connection.execution_options(isolation_level="READ COMMITTED")
    with progress(expired, chunk=MOST) as advance:
        while not cleaning.is_over:
            time.sleep(cleaning.pause_seconds)
            chunk = cleaning.step(connection)
            deleted += chunk
            advance(chunk)
    return deleted


def _jobs(number: int) -> str:
    return "1 job" if number == 1 else f"{number} jobs"
