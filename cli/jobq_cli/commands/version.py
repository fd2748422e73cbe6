"""`jobq version`."""

from __future__ import annotations

import platform
from importlib.metadata import version as installed

from jobq_cli.options import AsJson
from jobq_cli.output import print_json

RUNS_ON = ("SQLAlchemy", "psycopg", "alembic", "anyio", "typer")


def version(as_json: AsJson = False) -> None:
    """Show the versions of jobq and of what it runs on.

    \b
    Example:
      jobq version
    """
    versions = {"jobq": installed("jobq"), "Python": platform.python_version()}
    versions |= {name: installed(name) for name in RUNS_ON}
    if as_json:
        print_json([versions])
    else:
        print(", ".join(f"{name} {number}" for name, number in versions.items()))
