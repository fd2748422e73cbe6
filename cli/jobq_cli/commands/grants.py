"""`jobq grants`."""

from __future__ import annotations

from typing import Annotated

import typer

from jobq.errors import OptionError
from jobq.grants import Duty, Grant, checked_duty
from jobq.grants import grants as grants_for
from jobq.tables import SCHEMA
from jobq_cli.options import AsJson
from jobq_cli.output import print_json


def _pairs(values: list[str] | None) -> list[str]:
    for value in values or []:
        role, _, duty = value.rpartition("=")
        if not role:
            raise typer.BadParameter(f"ROLE=DUTY, such as app=enqueue, not {value[:80]!r}")
        _checked(role, duty)
    return values or []


def _checked(role: str, duty: str) -> None:
    try:
        checked_duty(duty)
        grants_for([(role, duty)])
    except OptionError as error:
        raise typer.BadParameter(str(error)) from error


def _a_schema(value: str) -> str:
    try:
        grants_for([], schema=value)
    except OptionError as error:
        raise typer.BadParameter(str(error)) from error
    return value


_HELP = f"A role and what it is for: {', '.join(Duty)}. May be given again, also for the same role."
Roles = Annotated[list[str], typer.Option("--role", metavar="ROLE=DUTY", callback=_pairs, help=_HELP)]
Schema = Annotated[
    str,
    typer.Option("--schema", metavar="NAME", callback=_a_schema, help="Where the tables are, if not in `jobq`."),
]


def grants(role: Roles, schema: Schema = SCHEMA, as_json: AsJson = False) -> None:
    """Print the GRANTs that database roles need; nothing is executed, and no database is asked.

    enqueue: insert jobs, and change waiting ones by their unique key; neither claim nor read args. work: what `jobq
    run` does. operate: the commands that repair. read: those that look, and metrics.

    \b
    Example:
      jobq grants --role app=enqueue --role worker=work --role ui=read | psql
    """
    made = grants_for([(each.rpartition("=")[0], each.rpartition("=")[2]) for each in role], schema=schema)
    if as_json:
        print_json(map(_as_dict, made))
    else:
        print("\n".join(dict.fromkeys(grant.sql for grant in made)))  # two duties of a role have some in common


def _as_dict(grant: Grant) -> dict[str, str]:
    return {
        "role": grant.role, "duty": grant.duty, "privileges": grant.privileges, "on": grant.on, "sql": grant.sql,
    }  # fmt: skip
