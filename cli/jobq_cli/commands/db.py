"""`jobq db`: the database in use, and the embedded PostgreSQL of this project."""

from __future__ import annotations

import typer

from jobq import embedded, urls
from jobq_cli.connect import target
from jobq_cli.lazy import PLAIN
from jobq_cli.options import AsJson, DatabaseUrl
from jobq_cli.output import print_json

HELP = """The database in use, and the embedded PostgreSQL of this project's folder.

\b
Examples:
  jobq db url
  jobq db stop
"""
app = typer.Typer(**PLAIN, help=HELP)


@app.command()
def url(database_url: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Print the URL of the database in use, without its password.

    \b
    Example:
      psql "$(jobq db url)"
    """
    chosen = target(database_url)
    text = urls.safe(chosen.url._replace(drivername="postgresql", password=None))
    if as_json:
        print_json([{"url": text, "from": chosen.source}])
    else:
        print(text)


@app.command()
def stop(as_json: AsJson = False) -> None:
    """Stop this project's embedded PostgreSQL; its data stay.

    It stops by itself soon after the last process that uses it.

    \b
    Example:
      jobq db stop
    """
    directory = embedded.project_directory()
    stopped = embedded.stop(directory)
    if as_json:
        print_json([{"stopped": stopped, "directory": str(directory)}])
    else:
        print(f"stopped the PostgreSQL in {directory}" if stopped else f"no PostgreSQL runs in {directory}")
