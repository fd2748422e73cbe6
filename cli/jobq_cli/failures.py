"""Every failure as one line on stderr, without passwords or the values of a statement."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

from jobq.errors import JobqError, OptionError, OptionTypeError
from jobq_cli.text import printable

FAILURE, USAGE = 1, 2
TRACEBACK = "JOBQ_TRACEBACK"


class Failed(Exception):
    """A command could not do its work: the text is for the user."""


def say(text: str) -> None:
    """Words, on stderr: a line that no data can pretend to be."""
    print(printable(text), file=sys.stderr)


def report_usage(error: Any) -> int:
    """Wrong usage: what is wrong, and where the help is."""
    message = " ".join(error.format_message().split()).rstrip(".").removeprefix("Invalid value: ")
    message = message.replace(": Value error, ", ": ")  # of the library that checks options, for people who write it
    context = error.ctx
    say(f"error: {message} (see: {context.command_path} --help)" if context else f"error: {message}")
    return USAGE


def trace(error: Exception) -> None:
    """For those who ask for it."""
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)


def report(error: Exception) -> int:
    """Say what went wrong; the exit code."""
    if isinstance(error, (OptionError, OptionTypeError)):
        say(f"error: {error}")
        return USAGE
    say(f"error: {_explain(error)}")
    return FAILURE


def _explain(error: Exception) -> str:
    if isinstance(error, (JobqError, Failed)):
        return str(error)
    if isinstance(error, OSError) and error.filename is None:
        return f"cannot write the output: {error.strerror or type(error).__name__}"
    from sqlalchemy.exc import DBAPIError

    if isinstance(error, DBAPIError):
        return said_by_database(error)
    return f"{type(error).__name__}: {error} (this is a fault in jobq; {TRACEBACK}=1 shows where)"


def said_by_database(error: Any) -> str:
    """The first sentence of what the driver or the server said: details and statements may hold values."""
    from jobq.faults import hint_for

    original = error.orig
    state = getattr(original, "sqlstate", None)
    primary = getattr(getattr(original, "diag", None), "message_primary", None)
    text = primary or " ".join(str(original).split())
    hint = _HINTS.get(state or "") or hint_for(text)
    return f"the database says: {text}{f' [{state}]' if state else ''}{hint}"


_HINTS = {
    "42501": ": the role lacks a right on the tables of jobq; grant it (all it needs: jobq grants), or use another",
    "25006": ": the server or the session is read-only",
    "57014": ": the statement was cancelled, by hand or by statement_timeout",
    "55P03": ": another session holds a lock; try again",
    "40P01": ": try again",
    "40001": ": try again",
}
