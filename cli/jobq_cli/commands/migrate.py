"""`jobq migrate`."""

from __future__ import annotations

from typing import Annotated

import typer

from jobq.schema import migrate as migrate_database
from jobq.schema import migration_sql
from jobq_cli.connect import engine_for, raw_connect, target
from jobq_cli.options import AsJson, DatabaseUrl
from jobq_cli.output import print_json
from jobq_cli.text import as_dict

Sql = Annotated[bool, typer.Option("--sql", help="Print the SQL from an empty database on, and change nothing.")]


def migrate(sql: Sql = False, database_url: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Create jobq's tables, or bring them up to date; they live in a schema of their own, `jobq`.

    May be run at every start, by many processes at once, and while workers run.

    \b
    Examples:
      jobq migrate
      jobq migrate --sql > jobq.sql
    """
    if sql:
        print(migration_sql(), end="")
        return
    chosen = target(database_url)
    with raw_connect(chosen):
        pass  # a database that cannot be reached is told as everywhere else
    migrated = migrate_database(engine_for(chosen))
    if as_json:
        print_json([as_dict(migrated)])
    elif migrated.before == migrated.after:
        print(f"the tables are at revision {migrated.after} already")
    else:
        print(f"the tables are at revision {migrated.after} now (before: {migrated.before or 'none'})")
