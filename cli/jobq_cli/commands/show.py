"""`jobq show`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from jobq import admin, explain, showing
from jobq.errors import UnknownJobError
from jobq.model import OPEN, Failure, Job, Progress, State
from jobq.reports import NAMES
from jobq_cli.connect import connect
from jobq_cli.options import AsJson, DatabaseUrl, JobId
from jobq_cli.output import print_json, print_lines
from jobq_cli.styles import STATE_STYLES
from jobq_cli.text import ago, as_dict, bar, json_line, moment, printable_lines, span

Lines = Iterator[tuple[str, str]]
SHORT = 66  # characters of JSON that fit beside their name in 80
KEPT = 25  # errors; of more the oldest are dropped


def show(job_id: JobId, database_url: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Show one job: its args, what it waits for, its progress and result, its timeline, and every failed attempt with
    its traceback.

    Secret args are masked, *** in their place: those that the handler has as jobq.Secret[...], and whatever stands
    under a key such as password or api_key.

    \b
    Example:
      jobq show 42
    """
    with connect(database_url) as connection:
        now = connection.scalar(sa.select(sa.func.now()))
        job, text = admin.get(connection, job_id), admin.args_text(connection, job_id)
        if job is None:
            raise UnknownJobError(job_id)
        secrets = showing.secrets_of(connection, job)
        stands = str(explain.why(connection, job_id)) if job.state in OPEN else None
    job = replace(job, args=_writable(job.args), meta=_writable(job.meta) or {})
    unreadable = showing.without_secrets_in_text(text or "", secrets) if job.args is None else None
    job = showing.without_secrets(job, secrets)
    if as_json:
        print_json([_as_json(job, unreadable)])
    else:
        print_lines(_described(job, unreadable, now or job.created_at, stands))


def _writable(value: dict[str, Any] | None) -> dict[str, Any] | None:
    """None for what is nested too deep to be written: it is shown as the database writes it."""
    try:
        json.dumps(value, indent=2)
    except RecursionError:
        return None
    return value


def _as_json(job: Job, unreadable: str | None) -> dict[str, Any]:
    errors = [as_dict(failure) for failure in job.errors]
    return {**as_dict(job), "errors": errors, "args_text": unreadable}


def _described(job: Job, unreadable: str | None, now: datetime, stands: str | None) -> Lines:
    yield f"job {job.id} is {job.state}", f"bold {STATE_STYLES[job.state]}"
    for name, value in _facts(job):
        yield f"  {name:<11} {value}", ""
    if stands is not None:
        yield f"  {'why':<11} {stands}", ""
    yield from _args(job, unreadable)
    yield from _told(job)
    yield "", ""
    yield "timeline", "bold"
    for at, what, style in _timeline(job):
        yield f"  {moment(at)}  {what} ({ago(at, now)})", style
    for failure in job.errors:
        yield from _failure(failure)


def _facts(job: Job) -> Iterator[tuple[str, str]]:
    yield "kind", job.kind
    yield "queue", f"{job.queue}, priority {job.priority}"
    yield "attempts", _attempts(job)
    optional = {"outcome": job.outcome, "unique key": job.unique_key}
    yield from ((name, value) for name, value in optional.items() if value is not None)
    if rest := {name: value for name, value in job.meta.items() if name not in NAMES}:
        yield "meta", json_line(rest)


def _args(job: Job, unreadable: str | None) -> Lines:
    if job.args is None:
        yield "  args        (Python cannot parse these, so no handler can get them)", "yellow"
        yield f"              {unreadable}", ""
    else:
        yield from _json("args", job.args)


def _json(name: str, value: Any) -> Lines:
    """On one line where it fits."""
    text = json.dumps(value, ensure_ascii=False)
    first, *rest = [text] if len(text) <= SHORT else json.dumps(value, ensure_ascii=False, indent=2).split("\n")
    yield f"  {name:<11} {first}", ""
    yield from ((f"{'':14}{line}", "") for line in rest)


def _told(job: Job) -> Lines:
    """What its handler has said: of a job that goes on in another attempt also in which one."""
    if job.progress is not None:
        yield f"  {'progress':<11} {_progress(job.progress, job.attempt)}", ""
    for name, value in (("checkpoint", job.checkpoint), ("result", job.result)):
        if value is not None:
            yield from _json(name, value)


def _progress(progress: Progress, attempt: int) -> str:
    when = "" if progress.attempt == attempt else f" (attempt {progress.attempt})"
    return f"{bar(progress.fraction)}  {progress.message}".rstrip() + when


def _timeline(job: Job) -> list[tuple[datetime, str, str]]:
    """What is known of the job's past, and what is to come, in the order of time."""
    events = [(job.created_at, f"enqueued at {job.callsite}" if job.callsite else "enqueued", "")]
    events += [(failure.at, _failed(job, failure), "red") for failure in job.errors]
    if job.attempted_at is not None:
        events.append((job.attempted_at, f"attempt {job.attempt} started", ""))
    if job.finished_at is not None:
        took = f" after {span(job.finished_at - job.attempted_at)}" if job.attempted_at else ""
        events.append((job.finished_at, f"{job.state}{took}", STATE_STYLES[job.state]))
    if job.state is State.PENDING or job.run_at > job.created_at:
        events.append((job.run_at, "due", "cyan"))
    if job.expires_at is not None:
        events.append((job.expires_at, "kept until then", "dim"))
    return sorted(events, key=lambda event: event[0])


def _failed(job: Job, failure: Failure) -> str:
    """How long it took is known of the last attempt."""
    is_last = failure.attempt == job.attempt and job.attempted_at is not None and failure.at >= job.attempted_at
    took = f", after {span(failure.at - job.attempted_at)}" if is_last and job.attempted_at else ""
    where = f", on {failure.worker}" if failure.worker else ""
    return f"attempt {failure.attempt} failed: {failure.error}{took}{where}"


def _attempts(job: Job) -> str:
    """With those that left no error: what was snoozed, paused or given back runs again and has not failed."""
    if not job.attempt:
        return "none yet"
    of = f" of {job.max_attempts}" if job.max_attempts else ""
    said = f"claimed {_times(job.attempt)}, {job.failures}{of} failed"
    has_one_more = job.state in (State.RUNNING, State.DONE) or (job.state is State.CANCELLED and job.worker_id)
    others = job.attempt - len({failure.attempt for failure in job.errors}) - (1 if has_one_more else 0)
    if others <= 0 or len(job.errors) >= KEPT:
        return said
    return f"{said}, {others} put off (Snooze, a pause) or given back"


def _failure(failure: Failure) -> Lines:
    yield "", ""
    where = f" on {failure.worker}" if failure.worker else ""
    yield f"attempt {failure.attempt} failed at {moment(failure.at)}{where}", "bold red"
    yield f"  {failure.error}: {failure.message}", ""
    for line in printable_lines(failure.traceback or ""):
        yield f"    {line}", "dim"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
