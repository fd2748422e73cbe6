"""Every command with arguments that it can be run with, for the tests that look for canaries in what it prints."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

from typer.main import get_command

from jobq_cli.app import app

# {id} is a job; {canary} what must not come back; {app} an App that is on the path; {dead} a job that has ended.
LOOKING = {
    "stats": ("stats",),
    "top": ("top --once",),
    "list": ("list", "list --arg auth.password={canary}"),
    "show": ("show {id}",),
    "why": ("why {id}",),
    "queue list": ("queue list",),
    "health": ("health --min-workers 0",),
    "workers": ("workers",),
    "schedules": ("schedules", "schedules --app {app}"),
}
CHANGING = {
    "retry": ("retry {dead}", "retry --yes --state dead --arg auth.password={canary}"),
    "cancel": ("cancel {id}", "cancel --yes --arg auth.password={canary}"),
    "pause": ("pause default --reason why",),
    "resume": ("resume default",),
    "queue set": ("queue set default --weight 3",),
    "schedules run": ("schedules run nightly",),
    "clean": ("clean --dry-run", "clean"),
    "migrate": ("migrate", "migrate --sql"),
}
ABOUT = {
    "run": ("run --show-options",),  # a worker's own log: test_process_titles.py, tests/worker/test_secrets.py
    "check": ("check {app} --verbose",),
    "grants": ("grants --role app=enqueue",),
    "db url": ("db url",),
    "db stop": ("db stop",),
    "version": ("version",),
    "demo": ("demo --svg /nowhere/picture.svg",),  # it takes no database but its own
    "bench": ("bench --quick --only enqueue --database-url {url}",),  # as a role that may make no database
    "migration new": ("migration new",),  # without an alembic.ini: it takes no database
}
COMMANDS = {**LOOKING, **CHANGING, **ABOUT}
REFUSED = {"demo": 2, "bench": 1, "migration new": 1}  # their exit codes; the others' is 0


def found(group: Any = None, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command that the application has, and groups that do something by themselves."""
    group = group or get_command(app)
    for name, command in group.commands.items():
        if not hasattr(command, "commands"):
            yield f"{path}{name}", command
            continue
        if command.invoke_without_command:
            yield f"{path}{name}", command
        yield from found(command, f"{path}{name} ")


@cache
def _all() -> dict[str, Any]:
    return dict(found())


def lines(command: str, **values: Any) -> Iterator[list[str]]:
    """Its command lines, each also with --json, where that is a flag of it."""
    asked = _all()[command]
    has_json = any("--json" in each.opts and each.is_flag for each in asked.params)
    for line in COMMANDS[command]:
        words = [each.format(**values) for each in shlex.split(line)]
        yield words
        if has_json and "--sql" not in words:
            yield [*words, "--json"]
