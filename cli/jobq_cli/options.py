"""The options and arguments that commands share, as annotations."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

import typer

NAME_RULE = re.compile(r"[A-Za-z0-9_.:/-]{1,63}")
LARGEST_ID = 2**63 - 1


def _or_global(context: typer.Context, value: str | None) -> str | None:
    """`jobq --database-url U stats` and `jobq stats --database-url U` are the same."""
    return value or context.find_root().params.get("database_url")


def _a_name(value: str | None) -> str | None:
    if value is not None and not NAME_RULE.fullmatch(value):
        raise typer.BadParameter("1 to 63 of letters, digits and _ . - : / are allowed")
    return value


def _an_id(value: int) -> int:
    if not 1 <= value <= LARGEST_ID:
        raise typer.BadParameter("an id is between 1 and 2**63 - 1")
    return value


def _some_ids(values: list[int] | None) -> list[int]:
    return [_an_id(value) for value in values or []]


_URL_HELP = "The database; any form of a PostgreSQL URL."
GlobalDatabaseUrl: TypeAlias = Annotated[str | None, typer.Option("--database-url", metavar="URL", help=_URL_HELP)]
DatabaseUrl: TypeAlias = Annotated[
    str | None, typer.Option("--database-url", metavar="URL", help=_URL_HELP, callback=_or_global)
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
JobId: TypeAlias = Annotated[int, typer.Argument(metavar="ID", callback=_an_id, help="The job's id.")]
JobIds: TypeAlias = Annotated[
    list[int] | None, typer.Argument(metavar="ID", callback=_some_ids, help="The ids of the jobs.")
]
Queue: TypeAlias = Annotated[
    str | None, typer.Option("--queue", metavar="QUEUE", callback=_a_name, help="Only jobs of this queue.")
]
QueueName: TypeAlias = Annotated[str, typer.Argument(metavar="QUEUE", callback=_a_name, help="The queue's name.")]
Kind: TypeAlias = Annotated[
    str | None, typer.Option("--kind", metavar="KIND", callback=_a_name, help="Only jobs of this kind.")
]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Only count the jobs that would be changed.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before changing many jobs.")]
