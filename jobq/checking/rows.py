"""Whether the jobs that wait in the database, and its schedules, have handlers that their args fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from jobq.checking.found import Fault
from jobq.checking.judging import without_handler
from jobq.errors import ArgsError
from jobq.handlers import Handler
from jobq.statements import admin
from jobq.statements import checking as statements
from jobq.tables import jobs

CHUNK = 10_000  # rows that are read at a time


@dataclass(slots=True)
class _Group:
    """Jobs with the same fault from the same place."""

    first: int
    problem: str
    number: int = 1


@dataclass(slots=True)
class Rows:
    """What the database holds. `total`: the jobs that wait, known before they are read."""

    total: int
    highest: int
    checked: int = 0
    schedules: int = 0
    faults: list[Fault] = field(default_factory=list)

    @classmethod
    def of(cls, connection: sa.Connection) -> Rows:
        """Count what waits now; what is enqueued meanwhile is not looked at."""
        row = connection.execute(admin.extent(jobs, [statements.WAITING])).one()
        return cls(row.matched, row.highest)


def check_rows(
    connection: sa.Connection,
    rows: Rows,
    handlers: Mapping[str, Handler[..., Any]],
    advance: Callable[[int], object] = lambda count: None,
) -> None:
    """Look at every job that waits, in chunks of one statement each, and at the schedules."""
    groups: dict[tuple[str, str | None, str], _Group] = {}
    for chunk in _chunks(connection, rows.highest):
        for row in chunk:
            _add(groups, row, handlers)
        rows.checked += len(chunk)
        advance(len(chunk))
    rows.faults += [_fault(kind, callsite, group) for (kind, callsite, _), group in groups.items()]
    for row in connection.execute(statements.scheduled()):
        rows.schedules += 1
        if row.kind not in handlers:
            problem = f"the database's schedule {row.name!r}: {without_handler(row.kind, handlers)}"
            rows.faults.append(Fault("schedules", 0, row.kind, problem))


def _chunks(connection: sa.Connection, upto: int) -> Iterator[list[sa.Row[Any]]]:
    after: int | None = None
    while after is None or after < upto:
        binds = {"after": -1 if after is None else after, "upto": upto, "most": CHUNK}
        chunk = list(connection.execute(statements.waiting(), binds))
        if not chunk:
            return
        yield chunk
        after = chunk[-1].id


def _add(
    groups: dict[tuple[str, str | None, str], _Group], row: sa.Row[Any], handlers: Mapping[str, Handler[..., Any]]
) -> None:
    place, problem = _problem(row, handlers)
    if problem is None:
        return
    key = row.kind, row.callsite, place
    if key in groups:
        groups[key].number += 1
    else:
        groups[key] = _Group(row.id, problem)


def _problem(row: sa.Row[Any], handlers: Mapping[str, Handler[..., Any]]) -> tuple[str, str | None]:
    """Where in the args, and what is wrong."""
    handler = handlers.get(row.kind)
    if handler is None:
        return "", without_handler(row.kind, handlers)
    try:
        handler.codec.decode(row.args)
    except ArgsError as error:
        return error.path, f"{row.kind}: {error}"
    return "", None


def _fault(kind: str, callsite: str | None, group: _Group) -> Fault:
    """At the place that enqueued it, where that is known."""
    path, _, line = (callsite or "").rpartition(":")
    others = f" and {group.number - 1} more" if group.number > 1 else ""
    waits = "wait" if others else "waits"
    problem = f"job {group.first}{others} {waits}: {group.problem}"
    return Fault(path, int(line), kind, problem) if path and line.isdecimal() else Fault("jobs", 0, kind, problem)
