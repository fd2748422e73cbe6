"""`jobq why`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobq import explain
from jobq.answers.causes import Why
from jobq_cli.connect import connect
from jobq_cli.options import AsJson, DatabaseUrl, JobId
from jobq_cli.output import print_json, print_lines
from jobq_cli.styles import STATE_STYLES
from jobq_cli.text import as_dict


def why(job_id: JobId, database_url: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Say why a job has not run, or not finished: the one cause, and what to type about it.

    Of several causes the first is the one that binds: it needs a person, or lasts longest.

    \b
    Example:
      jobq why 42
    """
    with connect(database_url) as connection:
        answer = explain.why(connection, job_id)
    if as_json:
        print_json([_as_json(answer)])
    else:
        print_lines(_lines(answer))


def _lines(answer: Why) -> Iterator[tuple[str, str]]:
    yield str(answer), f"bold {STATE_STYLES[answer.state]}"
    for reason in answer.also:
        yield f"  and it {reason.words}", ""
    if answer.reason.command is not None:
        yield f"  next: {answer.reason.command}", "dim"


def _as_json(answer: Why) -> dict[str, Any]:
    about = {"id": answer.id, "state": answer.state, "at": answer.at}
    return {**about, **as_dict(answer.reason), "also": [as_dict(reason) for reason in answer.also]}
