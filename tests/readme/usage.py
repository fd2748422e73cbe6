"""Command lines as the documents write them: whether `jobq` takes them, asked of its own parser."""

from __future__ import annotations

import re
import shlex
from typing import Any

from typer.main import get_command

from jobq_cli.app import UsageError, app

ID = "42"
# An argument, the value of an option, the command of a group.
MAY_BE_LEFT_OUT = ("MissingParameter", "BadOptionUsage", "NoArgsIsHelpError")


def taken(line: str) -> bool:
    """Whether the command is there, with the options and arguments shown. Raises the usage error that a user sees."""
    _context(shlex.split(line)[1:])
    return True


def exists(line: str) -> bool:
    """Whether the command is there, with the options shown; what it needs may be left out of the text."""
    try:
        return taken(line)
    except UsageError as error:
        if type(error).__name__ not in MAY_BE_LEFT_OUT:
            raise
        return True


def has_option(line: str, option: str) -> bool:
    """Whether the command of `line` takes an option, as `--queue` or with its value, `--log json`."""
    name, _, value = option.partition(" " if " " in option else "=")
    parameters = _context(shlex.split(line)[1:]).command.params
    options = {each for parameter in parameters for each in (*parameter.opts, *parameter.secondary_opts)}
    return name in options and (not value or taken(f"{line} {name} {value}"))


def is_command(span: str) -> bool:
    return re.match(r"jobq [a-z]", span) is not None


def _context(arguments: list[str]) -> Any:
    """The context of the innermost command, with its arguments parsed; nothing is run."""
    context = get_command(app).make_context("jobq", arguments)
    while rest := [*_protected(context), *context.args]:
        name, command, further = context.command.resolve_command(context, rest)
        context = command.make_context(name, further, parent=context)
        if not hasattr(command, "resolve_command"):
            break
    return context


def _protected(context: Any) -> list[str]:
    """The name of the subcommand: click 8.2 calls it otherwise than 8.1, and warns of the old name."""
    fields = vars(context)
    return fields.get("_protected_args", fields.get("protected_args", []))
