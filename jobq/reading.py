"""Rows of jobs as values. What a row holds is untrusted: whatever is in it, reading the others goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

from jobq.backoff import LONGEST
from jobq.codec.form import Misfit
from jobq.codec.text import may_be_deep
from jobq.codec.walk import inspect_tree
from jobq.model import Failure, Job, Progress, State
from jobq.reports import CHECKPOINT, PROGRESS


def job_of(row: Mapping[Any, Any]) -> Job:
    """A job from a row with args, meta, errors and result as text, or without them where they were not asked for."""
    meta = object_of(row.get("meta")) or {}
    decoded = {
        "args": object_of(row.get("args")),
        "meta": meta,
        "errors": failures_of(row.get("errors"), otherwise_at=row["created_at"]),
        "progress": progress_of(meta.get(PROGRESS) or parsed(row.get(PROGRESS))),
        "checkpoint": found if isinstance(found := meta.get(CHECKPOINT), dict) else None,
        "result": value_of(row.get("result")),
    }
    return Job(**{**row, **decoded, "state": State(row["state"])})


def progress_of(value: Any) -> Progress | None:
    """None for what jobq has not written."""
    if not isinstance(value, dict):
        return None
    fraction, message, attempt = value.get("fraction"), value.get("message"), value.get("attempt")
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 <= fraction <= 1:
        return None
    return Progress(
        float(fraction),
        message if isinstance(message, str) else "",
        attempt if isinstance(attempt, int) else 0,
    )


def span_of(value: Any) -> timedelta | None:
    """The span that `meta` says in seconds, such as a job's own timeout; None for what makes no sense."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LONGEST.total_seconds():
        return None
    return timedelta(seconds=value)


def object_of(text: str | None) -> dict[str, Any] | None:
    """The JSON object, None for what no enqueue would have taken."""
    value = value_of(text)
    return value if isinstance(value, dict) else None


def value_of(text: str | None) -> Any:
    """The JSON value, None for what jobq would not have written: jsonb holds longer numbers and deeper nesting.

    How deep Python itself reads, and goes into what it has read, differs from version to version.
    """
    value = parsed(text)
    try:
        if text is not None and may_be_deep(text):
            inspect_tree(value)
    except (Misfit, RecursionError):
        return None
    return value


def failures_of(text: str | None, *, otherwise_at: datetime) -> tuple[Failure, ...]:
    """The failed attempts that a row keeps; one that is not as jobq writes it is shown as it stands."""
    if text is None:
        return ()
    value = value_of(text)
    entries = value if isinstance(value, list) else [text]
    return tuple(_failure(entry, otherwise_at) for entry in entries)


def _failure(entry: Any, otherwise_at: datetime) -> Failure:
    if not isinstance(entry, dict):
        return Failure(attempt=0, at=otherwise_at, worker=None, error="unreadable", message=str(entry))
    attempt, worker, trace = entry.get("attempt"), entry.get("worker"), entry.get("traceback")
    return Failure(
        attempt=attempt if isinstance(attempt, int) else 0,
        at=_time(entry.get("at")) or otherwise_at,
        worker=None if worker is None else str(worker),
        error=str(entry.get("error", "unreadable")),
        message=str(entry.get("message", "")),
        traceback=None if trace is None else str(trace),
    )


def parsed(text: str | None) -> Any:
    """What JSON text says, None for what Python cannot read: jsonb holds longer numbers and deeper nesting."""
    try:
        return None if text is None else json.loads(text, parse_float=_finite)
    except (ValueError, RecursionError):
        return None


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("beyond what a float can hold")
    return number


def _time(text: Any) -> datetime | None:
    """Only an aware time: a naive one could not be compared with the others."""
    try:
        at = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return at if at.tzinfo else None
