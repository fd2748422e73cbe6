"""The statements that insert one job; those for many stand in enqueue_rows.py."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa

from jobq.statements import unique
from jobq.statements.binds import json_param, param, seconds
from jobq.statements.notify import told
from jobq.tables import TIMESTAMP, jobs

COLUMNS = ("queue", "kind", "args", "priority", "run_at", "max_attempts", "unique_key", "callsite", "meta")
NOTHING = sa.cast(sa.null(), sa.Text)


def due_at(run_at: Any, delay: Any) -> sa.ColumnElement[Any]:
    """When a job is due: never before now, where it would land behind the workers' cursors. NULLs do not count."""
    return sa.func.greatest(sa.func.now(), run_at, sa.func.now() + delay)


def not_after(moment: Any, latest: Any) -> sa.ColumnElement[Any]:
    """The moment, or `latest` if that comes first; NULL sets no limit."""
    return sa.func.least(moment, latest)


def inserted(rows: sa.SelectBase, name: str | None = "fresh") -> sa.CTE:
    """Insert what a SELECT of COLUMNS gives; as a table, what a notification and an answer need."""
    insert = sa.insert(jobs).from_select(COLUMNS, rows, include_defaults=False)
    return insert.returning(jobs.c.id, jobs.c.queue, jobs.c.priority, jobs.c.run_at, jobs.c.unique_key).cte(name)


@cache
def enqueue() -> sa.Insert:
    """One job without a key. Binds: queue, kind, args, priority, run_at, delay, max_attempts, callsite, meta, channel.

    `delay` is in seconds; `run_at`, `delay`, `max_attempts`, `callsite` and `channel` (no notification) may be NULL.
    Row: id, and what pg_notify gave.
    """
    return (
        sa.insert(jobs).values(job_of_binds()).returning(jobs.c.id, told(jobs.c.queue, jobs.c.priority, jobs.c.run_at))
    )


@cache
def enqueue_keyed() -> sa.Executable:
    """One job with a key, or who holds the key, in one round trip.

    Binds: as `enqueue`, unique_key, unique_names, max_wait (in seconds, may be NULL: how long after now it may be due).
    Row: id, created, unique_key; no row when the holder came or went during the statement. Not DO UPDATE: that would
    hold the row, and stall its claim and its completion.
    """
    keys = {name: param(name, sa.Text) for name in ("unique_key", "unique_names")}
    job = job_of_binds()
    job["run_at"] = not_after(job["run_at"], sa.func.now() + seconds("max_wait"))
    given = sa.select(*[value.label(name) for name, value in {**job, **keys}.items()]).cte("given")  # args: bound once
    key = unique.key(given.c.unique_key, given.c.kind, given.c.args, given.c.unique_names)
    wanted = sa.select(*[key.label(name) if name == "unique_key" else given.c[name] for name in COLUMNS]).cte("wanted")
    fresh = inserted(sa.select(*wanted.c).suffix_with(unique.UNLESS_HELD))
    tell = told(fresh.c.queue, fresh.c.priority, fresh.c.run_at)
    made = sa.select(fresh.c.id, sa.true().label("created"), fresh.c.unique_key, tell.label("told"))
    held = sa.select(jobs.c.id, sa.false(), jobs.c.unique_key, NOTHING).where(
        jobs.c.unique_key == wanted.c.unique_key, ~sa.exists(sa.select(fresh.c.id))
    )
    return sa.union_all(made, held)


def job_of_binds() -> dict[str, sa.ColumnElement[Any]]:
    """The columns of one job without a key, from its binds."""
    return {
        "queue": param("queue", sa.Text),
        "kind": param("kind", sa.Text),
        "args": json_param("args"),
        "priority": param("priority", sa.SmallInteger),
        "run_at": due_at(param("run_at", TIMESTAMP), seconds("delay")),
        "max_attempts": param("max_attempts", sa.Integer),
        "callsite": param("callsite", sa.Text),
        "meta": json_param("meta"),
    }
