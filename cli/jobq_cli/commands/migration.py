"""`jobq migration`: jobq's tables in an application's own Alembic history."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from jobq_cli.failures import Failed
from jobq_cli.lazy import PLAIN
from jobq_cli.options import AsJson
from jobq_cli.output import print_json
from jobq_cli.text import as_dict, printable

app = typer.Typer(**PLAIN)

Message = Annotated[str | None, typer.Option("-m", "--message", metavar="TEXT", help="What the revision is called.")]
ConfigFile = Annotated[
    Path | None, typer.Option("-c", "--config", metavar="FILE", help="Your alembic.ini or pyproject.toml.")
]
Schema = Annotated[str | None, typer.Option("--schema", metavar="NAME", help="Where the tables go; usually jobq.")]


@app.callback()
def migration() -> None:
    """The tables of jobq in your own Alembic history, so that `alembic upgrade head` makes them.

    \b
    Example:
      jobq migration new
    """


@app.command()
def new(message: Message = None, config: ConfigFile = None, schema: Schema = None, as_json: AsJson = False) -> None:
    """Write a revision into your own Alembic history.

    With it `alembic upgrade head` makes jobq's tables. It follows the head that is there, found as `alembic` finds it;
    no database is needed. After an update of jobq it writes one more revision if the tables have changed, and says so
    if nothing is to do.

    Autogenerate does not look into a schema of jobq's own. Where env.py has include_schemas=True, give it
    include_name=jobq_migrations.include_name; for tables in the default schema (--schema public) give it
    include_name=functools.partial(jobq_migrations.include_name, schema=None).

    \b
    Examples:
      jobq migration new
      jobq migration new -m "add jobq" --config migrations/alembic.ini
    """
    from alembic.util import CommandError

    from jobq_migrations.environment import find
    from jobq_migrations.new import new_revision

    try:
        written = new_revision(find(config), message=message, schema=schema)
    except CommandError as error:
        raise Failed(" ".join(str(error).split())) from error
    path = os.path.relpath(written.path)
    if as_json:
        print_json([{**as_dict(written), "path": path}])
    elif written.before == written.after:
        print(f"{printable(path)} brings the tables to revision {written.after} already: nothing to do")
    else:
        print(f"wrote {printable(path)}: `alembic upgrade head` brings the tables of jobq to revision {written.after}")
