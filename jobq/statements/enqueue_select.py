"""The statement that inserts a job for each row of a SELECT: built for that SELECT, compiled once by SQLAlchemy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import visitors

from jobq.statements import unique
from jobq.statements.binds import json_param, param, seconds
from jobq.statements.enqueue import COLUMNS, NOTHING, due_at, inserted
from jobq.statements.enqueue_rows import told_by_lane
from jobq.tables import TIMESTAMP, jobs

BINDS = frozenset({
    "queue",
    "kind",
    "priority",
    "run_at",
    "delay",
    "max_attempts",
    "callsite",
    "meta",
    "channel",
    "unique_names",
})  # fmt: skip
NO_NUMBER = sa.cast(sa.null(), sa.Integer)
NO_ROWS = sa.cast(sa.null(), sa.BigInteger)


@dataclass(frozen=True, slots=True)
class Rows:
    """What each row of the SELECT gives: expressions over it. `unfit`: conditions of rows that cannot be jobs.

    `run_at` and `priority` are NULL where the row leaves them to the options.
    """

    args: sa.ColumnElement[Any]
    run_at: sa.ColumnElement[Any]
    priority: sa.ColumnElement[Any]
    unfit: tuple[sa.ColumnElement[Any], ...]


def own_binds(select: sa.SelectBase) -> frozenset[str]:
    """The names that a SELECT gives to binds of its own, where one statement cannot have them and ours."""
    binds = (each for each in visitors.iterate(select) if isinstance(each, sa.BindParameter))
    return BINDS & {str(bind.key) for bind in binds if not bind.unique}


def enqueue_select(rows: Rows, *, most_bytes: int, keyed: bool, must_be_new: bool) -> sa.Executable:
    """All rows, or none if one is unfit. Binds: BINDS, of them unique_names only where `keyed`.

    Answers: (NULL, the number inserted); (n, the number of rows) for each condition that rows were unfit by, from 0,
    after them one for args of more than `most_bytes`; with `must_be_new` a `key`, the first held or repeated.
    """
    wanted = _wanted(rows, most_bytes, keyed)
    ordered = sa.select(*[wanted.c[name] for name in COLUMNS]).where(_none_unfit(wanted))
    if keyed:
        ordered = ordered.order_by(unique.bytewise(wanted.c.unique_key), wanted.c.ord).suffix_with(unique.UNLESS_HELD)
    fresh = inserted(ordered, None)
    count = sa.select(
        NO_NUMBER.label("problem"), sa.func.count().label("rows"), NOTHING.label("key"), NOTHING.label("told")
    ).select_from(fresh)
    unfit = sa.select(wanted.c.problem, sa.func.count(), NOTHING, NOTHING).group_by(wanted.c.problem)
    answers: list[Any] = [count, unfit.where(wanted.c.problem.is_not(None))]
    if must_be_new:
        answers.append(sa.select(NO_NUMBER, NO_ROWS, _missed(wanted, fresh), NOTHING))
    return sa.union_all(*answers, told_by_lane(fresh, sa.Integer, sa.BigInteger, sa.Text))


def _wanted(rows: Rows, most_bytes: int, keyed: bool) -> sa.CTE:
    """Each row as a job, and the number of the first condition that it is unfit by."""
    number = sa.case(*[(condition, n) for n, condition in enumerate(rows.unfit)]) if rows.unfit else sa.null()
    given = sa.select(
        rows.args.label("args"),
        rows.run_at.label("run_at"),
        rows.priority.label("priority"),
        sa.cast(number, sa.Integer).label("problem"),
    ).subquery()
    too_long = sa.case((sa.func.octet_length(sa.cast(given.c.args, sa.Text)) > most_bytes, len(rows.unfit)))
    job = _job(given, keyed)
    return sa.select(
        *[job[name].label(name) for name in COLUMNS],
        sa.func.row_number().over().label("ord"),
        sa.func.coalesce(given.c.problem, too_long).label("problem"),
    ).cte()


def _job(given: sa.Subquery, keyed: bool) -> Mapping[str, sa.ColumnElement[Any]]:
    kind = param("kind", sa.Text)
    run_at = sa.func.coalesce(given.c.run_at, param("run_at", TIMESTAMP))
    return {
        "queue": param("queue", sa.Text),
        "kind": kind,
        "args": given.c.args,
        "priority": sa.func.coalesce(given.c.priority, param("priority", sa.SmallInteger)),
        "run_at": due_at(run_at, seconds("delay")),
        "max_attempts": param("max_attempts", sa.Integer),
        "unique_key": unique.derived_key(kind, given.c.args, param("unique_names", sa.Text)) if keyed else NOTHING,
        "callsite": param("callsite", sa.Text),
        "meta": json_param("meta"),
    }


def _none_unfit(wanted: sa.CTE) -> sa.ColumnElement[bool]:
    other = wanted.alias()  # the same rows: asked once, not for each of them
    return ~sa.exists(sa.select(other.c.ord).where(other.c.problem.is_not(None)))


def _missed(wanted: sa.CTE, fresh: sa.CTE) -> sa.ScalarSelect[Any]:
    """The first key of which fewer jobs were inserted than wanted."""
    left = sa.except_all(sa.select(wanted.c.unique_key), sa.select(fresh.c.unique_key)).subquery()
    return sa.select(sa.func.min(unique.bytewise(left.c.unique_key))).scalar_subquery()


def holder() -> sa.Select[tuple[int]]:
    """Who holds a key. Bind: key."""
    return sa.select(jobs.c.id).where(jobs.c.unique_key == param("key", sa.Text))
