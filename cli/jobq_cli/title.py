"""What `ps` shows of a command: no database URL that holds a password.

The kernel shows a command line as it was started. So the process starts itself anew, under the same id, with *** in
place of such URLs. What was typed goes along in a variable, which is taken out of the environment at once. That is not
JOBQ_DATABASE_URL: `jobq bench` does not read it, an application may have its own URL there and hand it on to programs
that it starts, and messages would name a place where nobody wrote.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress

OPTIONS = ("--database-url", "--listen-url")
HIDDEN = "***"
VARIABLE = "JOBQ_COMMAND_LINE"

_SECRET_OPTION = re.compile(r"(password|secret|scram\w*key)\w*\s*=", re.IGNORECASE)


def kept_from_title(arguments: Sequence[str]) -> list[str]:
    """The arguments as they were typed; does not return where the process has to start anew for them."""
    typed, shown = list(arguments), hidden(arguments)
    if (brought := _brought()) is not None and hidden(brought) == typed:
        return brought
    if shown != typed and _is_title(typed):
        with suppress(OSError):  # no room, say: then it is as it was
            _start_anew(shown, typed)
    return typed


def hidden(arguments: Sequence[str]) -> list[str]:
    """*** for each URL that may hold a password. Too many do no harm: it is for the eye alone."""
    return [_hidden(before, each) for before, each in zip(["", *arguments], arguments, strict=False)]


def _hidden(before: str, argument: str) -> str:
    option, _, value = argument.partition("=")
    if option in OPTIONS and _has_password(value):
        return f"{option}={HIDDEN}"
    return HIDDEN if before in OPTIONS and _has_password(argument) else argument


def _has_password(url: str) -> bool:
    """Also where the URL is malformed. Without SQLAlchemy, which would take longer than all the rest."""
    rest = url.partition("://")[2] or url
    return ":" in rest.rpartition("@")[0] or _SECRET_OPTION.search(url) is not None


def _brought() -> list[str] | None:
    """What was typed, where this process is the one that was started anew."""
    try:
        return shlex.split(os.environ.pop(VARIABLE))
    except (KeyError, ValueError):
        return None


def _is_title(arguments: list[str]) -> bool:
    """Whether these are the arguments of this very process, and not of a call in one that is something else."""
    return os.name == "posix" and bool(sys.executable) and sys.orig_argv[-len(arguments) :] == arguments


def _start_anew(shown: list[str], typed: list[str]) -> None:
    """*** stays as it is the next time, so this happens once, even if the variable gets lost."""
    command = [*sys.orig_argv[: -len(typed)], *shown]
    os.execve(sys.executable, command, {**os.environ, VARIABLE: shlex.join(typed)})
