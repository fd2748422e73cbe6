"""Schedules in the database: published by workers, looked at, fired, read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from jobq.notify import channel_for
from jobq.periodic import KEY, PeriodicJob
from jobq.schedule import Fate, Step
from jobq.statements import schedules as statements
from jobq.store import inserting
from jobq.store.newjobs import Answer, Manner, NewJob

# What `schedules.job` holds besides the args.
JOB_BINDS = ("queue", "priority", "delay", "max_attempts", "meta")


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a schedule is: `last_tick` is the last that has its fate, `is_open`: a job of it waits or runs."""

    last_tick: datetime
    is_open: bool


@dataclass(frozen=True, slots=True)
class Look:
    """The database's clock, and the schedules that have a row."""

    now: datetime
    standing: Mapping[str, Standing]


@dataclass(frozen=True, slots=True)
class Due:
    """A step of a schedule, and the `last_tick` that it was computed from."""

    periodic: PeriodicJob
    seen: datetime
    step: Step


@dataclass(frozen=True, slots=True)
class Changed:
    """What stood in the database of a schedule until this code was published."""

    name: str
    kind: str
    expression: str


def publish(connection: sa.Connection, periodic: Iterable[PeriodicJob]) -> list[Changed]:
    """Write what the code says of its schedules, in the order of their names; those that stood there otherwise.

    A schedule that was never seen begins now; one whose expression has changed goes on from its last tick.
    """
    changed = []
    for each in sorted(periodic, key=lambda one: one.name):
        row = connection.execute(statements.publish(), _published(each)).one_or_none()
        if row is not None:
            changed.append(Changed(each.name, row.kind, row.expression))
    return changed


def look(connection: sa.Connection, names: Sequence[str]) -> Look:
    """The clock and the schedules, in one statement."""
    rows = connection.execute(statements.look(), {"names": list(names)}).all()
    standing = {row.name: Standing(row.last_tick, row.is_open) for row in rows if row.name is not None}
    return Look(rows[0].now, standing)


def fire(connection: sa.Connection, due: Sequence[Due]) -> dict[str, Fate]:
    """Take the steps that nobody else has taken, all in one statement; the fate of the tick of each, by its name."""
    binds = [_fired(each) for each in due]
    arrays: dict[str, Any] = {f"each_{field}": [each[field] for each in binds] for field in statements.FIELDS}
    channel = channel_for(connection, {each["queue"] for each in binds if each["fires"]})
    rows = connection.execute(statements.fire(), {**arrays, "channel": channel})
    return {row.name: Fate(row.fate) for row in rows if row.name is not None}


def enqueue_now(connection: sa.Connection, name: str, callsite: str | None) -> Answer | None:
    """Insert a schedule's job, if none of it is open; None: there is no such schedule."""
    row = connection.execute(statements.read_job(), {"name": name}).mappings().one_or_none()
    if row is None:
        return None
    never = dict.fromkeys(("run_at", "unique_names", "max_wait"))
    binds = {**never, **{field: row[field] for field in JOB_BINDS}, "unique_key": KEY + name}
    job = NewJob(row["args"], Manner(binds, is_later=bool(row["delay"])))
    return inserting.insert(connection, job, {"kind": row["kind"], "callsite": callsite})


def _options(periodic: PeriodicJob) -> dict[str, Any]:
    binds = periodic.job.effective().binds(periodic.job.secrets)
    return {name: binds[name] for name in JOB_BINDS}


def _published(periodic: PeriodicJob) -> dict[str, Any]:
    schedule = periodic.schedule
    return {
        "name": periodic.name,
        "kind": periodic.job.kind,
        "form": schedule.form,
        "expression": schedule.expression,
        "timezone": schedule.zone.key,
        "catch_up": schedule.catch_up,
        "job": _as_json(periodic),
    }


def _as_json(periodic: PeriodicJob) -> str:
    """What a schedule enqueues; args and meta are JSON already."""
    options = _options(periodic)
    meta = options.pop("meta")
    return f'{{"args": {periodic.args}, "meta": {meta}, {json.dumps(options)[1:]}'


def _fired(due: Due) -> dict[str, Any]:
    return {
        **_options(due.periodic),
        "name": due.periodic.name,
        "kind": due.periodic.job.kind,
        "args": due.periodic.args,
        "seen": due.seen,
        "tick": due.step.tick,
        "missed": due.step.missed,
        "fires": due.step.fires,
    }
