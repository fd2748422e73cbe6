"""Why a job was left as it is by a repair, as an error that can be raised or shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jobq.errors import JobqError, NotEndedError, NotPendingError, UniqueKeyError, UnknownJobError
from jobq.spans import moment


@dataclass(frozen=True, slots=True)
class Refusal:
    """A job that was left as it is, and why."""

    id: int
    error: JobqError


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a retry or a cancel did: the ids it changed, ascending, and those that it left as they are."""

    ids: tuple[int, ...]
    refused: tuple[Refusal, ...] = ()


def refuse_retry(id: int, row: Any | None, holders: Mapping[str, int]) -> Refusal:  # noqa: A002
    """`row`: where the job stands, None when it is in neither table; `holders`: which open job holds which key."""
    if row is None:
        return Refusal(id, UnknownJobError(id))
    if row.state in ("pending", "running"):
        what_next = "it runs by itself once it is due" if row.state == "pending" else "wait for its end, or cancel it"
        message = f"job {id} is {row.state}: only ended jobs are retried by hand ({what_next})"
        return Refusal(id, NotEndedError(message, id=id, state=row.state))
    holder = holders.get(row.unique_key)
    by = (
        "another job that has just ended: try again"
        if holder is None
        else f"job {holder}: wait for its end or cancel it"
    )
    message = f"job {id} stays {row.state}: its unique key {row.unique_key!r} is held by {by}"
    return Refusal(id, UniqueKeyError(message, key=str(row.unique_key), holder=holder))


def refuse_cancel(id: int, row: Any | None) -> Refusal:  # noqa: A002
    """`row`: where the job stands, None when it is in neither table."""
    if row is None:
        return Refusal(id, UnknownJobError(id))
    if row.state == "running":
        why = "is running: only with running=True (jobq cancel --running) it is taken from its worker"
    elif row.state == "pending":
        why = "has just gone back to pending: try again"
    else:
        why = f"has ended already, at {moment(row.finished_at)}: {row.state}, {row.outcome or 'ok'}"
    return Refusal(id, NotPendingError(f"job {id} {why}", id=id, state=row.state))


def keys_of(rows: Iterable[Any]) -> list[str]:
    """The unique keys that some rows would need, each once."""
    return sorted({row.unique_key for row in rows if row.unique_key is not None})
