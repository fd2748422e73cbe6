"""Writes the revision that brings jobq's tables into an application's own Alembic history. Needs no database."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError, rev_id

from jobq.tables import SCHEMA
from jobq_migrations.calls import Upgrade, upgrades_in
from jobq_migrations.environment import history_of
from jobq_migrations.places import BASE, REVISIONS

SLOTS = ("imports", "upgrades", "downgrades")  # of a script.py.mako, where a revision's text goes


@dataclass(frozen=True, slots=True)
class Written:
    """The revision of jobq that the history brought before, None for none, and now; and the file that brings it.

    Where `before` is `after` nothing was to do.
    """

    before: str | None
    after: str
    path: str


def new_revision(config: Config, *, message: str | None = None, schema: str | None = None) -> Written:
    """Bring the history to the newest revision that this version of jobq knows, by one file more or by none.

    Raises: CommandError, one line, when the history has several heads or its template no room.
    """
    script = history_of(config)
    found = [upgrade for each in script.walk_revisions() for upgrade in upgrades_in(Path(each.path))]
    schema = schema or _only_schema(found)
    newest = max((each for each in found if each.schema == schema), key=_age, default=None)
    if newest and newest.to == REVISIONS[-1]:
        return Written(newest.to, newest.to, str(newest.path))
    _demand_one_head(script)
    _demand_slots(script)
    before = newest.to if newest else None
    return Written(before, REVISIONS[-1], _write(script, config, _words(message, before), before or BASE, schema))


def _write(script: ScriptDirectory, config: Config, message: str, before: str, schema: str) -> str:
    """By the application's own template, file names and hooks."""
    newest = REVISIONS[-1]
    up = _call("upgrade", to=newest, **({} if before == BASE else {"since": before}), **_other(schema))
    down = _call("downgrade", to=before, since=newest, **_other(schema))
    texts: dict[str, Any] = dict(zip(SLOTS, ("import jobq_migrations", up, down), strict=True))
    try:
        made = script.generate_revision(rev_id(), message, config=config, **texts)
    except CommandError:
        raise
    except Exception as error:  # of the application's template or hooks
        raise CommandError(f"the revision was not written as it should: {type(error).__name__}: {error}") from error
    assert made is not None, "a file was written"
    return str(made.path)


def _call(function: str, **arguments: str) -> str:
    written = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return f"jobq_migrations.{function}({written})"


def _other(schema: str) -> dict[str, str]:
    return {} if schema == SCHEMA else {"schema": schema}


def _words(message: str | None, before: str | None) -> str:
    """The message goes into a docstring, unescaped."""
    usual = "add the tables of jobq" if before is None else f"bring the tables of jobq to {REVISIONS[-1]}"
    return (message or usual).replace("\\", "/").replace('"', "'")


def _only_schema(found: list[Upgrade]) -> str:
    schemas = sorted({each.schema for each in found})
    if len(schemas) > 1:
        raise CommandError(f"the history brings jobq's tables to several schemas ({', '.join(schemas)}): give --schema")
    return schemas[0] if schemas else SCHEMA


def _age(upgrade: Upgrade) -> int:
    if upgrade.to not in REVISIONS:
        raise CommandError(
            f"{upgrade.path} brings revision {upgrade.to} of jobq, which this version does not know"
            f" (it knows {', '.join(REVISIONS)}): install the version that wrote it, or a later one"
        )
    return REVISIONS.index(upgrade.to)


def _demand_one_head(script: ScriptDirectory) -> None:
    heads = script.get_heads()
    if len(heads) > 1:
        raise CommandError(
            f"the history in {script.dir} has several heads ({', '.join(sorted(heads))}), and one revision follows one:"
            " join them first (`alembic merge heads`)"
        )


def _demand_slots(script: ScriptDirectory) -> None:
    template = Path(script.dir, "script.py.mako")
    text = template.read_text() if template.is_file() else ""
    if missing := [slot for slot in SLOTS if not re.search(rf"\$\{{\s*{slot}\b", text)]:
        raise CommandError(
            f"{template} leaves no room for {' and '.join(missing)}: write the revision by hand, with"
            f" `import jobq_migrations` and {_call('upgrade', to=REVISIONS[-1])} in the upgrade of jobq's database"
        )
