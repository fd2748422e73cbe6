"""The statement that inserts a job for each row of a SELECT: built for that SELECT, compiled once by SQLAlchemy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import visitors

from jobq.statements import unique
from jobq.statements.binds import param, seconds
from jobq.statements.enqueue import NOTHING, due_at, job_of_binds
from jobq.statements.enqueue_rows import told_by_lane
from jobq.statements.notify import told
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
SURELY_SHORT = 128  # bytes: even six numbers with as many digits as there can be are below 1 MiB of text
NO_NUMBER = sa.cast(sa.null(), sa.Integer)
NO_ROWS = sa.cast(sa.null(), sa.BigInteger)


@dataclass(frozen=True, slots=True)
class Rows:
    """What each row of the SELECT gives: expressions over it. `unfit`: conditions of rows that cannot be jobs.

    `run_at` and `priority` are None where no column gives them, and NULL where a row leaves them to the options.
    """

    args: sa.ColumnElement[Any]
    run_at: sa.ColumnElement[Any] | None
    priority: sa.ColumnElement[Any] | None
    unfit: tuple[sa.ColumnElement[Any], ...]

    @property
    def options(self) -> dict[str, sa.ColumnElement[Any]]:
        """What rows give besides args."""
        given = {"run_at": self.run_at, "priority": self.priority}
        return {name: value for name, value in given.items() if value is not None}


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
    unfit = _unfit(wanted)
    insert, made = _inserted(wanted, unfit)
    count = sa.select(
        NO_NUMBER.label("problem"), sa.func.count().label("rows"), NOTHING.label("key"), NOTHING.label("told")
    ).select_from(made)
    answers: list[Any] = [count, sa.select(unfit.c.problem, unfit.c.rows, NOTHING, NOTHING)]
    if must_be_new:
        answers.append(sa.select(NO_NUMBER, NO_ROWS, _missed(wanted, made), NOTHING))
    answers.append(_told(rows, made))
    return sa.union_all(*answers).add_cte(insert)


def _inserted(wanted: sa.CTE, unfit: sa.CTE) -> tuple[sa.CTE, sa.FromClause]:
    """The INSERT, and the rows that it makes: without keys all that it takes, so that none need be read back."""
    job = _job(wanted)
    taken = sa.select(*[value.label(name) for name, value in job.items()]).where(~sa.exists(unfit.select()))
    if "unique_key" not in wanted.c:
        return _insert(job, taken).cte(), taken.subquery()
    ordered = taken.order_by(unique.bytewise(wanted.c.unique_key), wanted.c.ord)
    insert = _insert(job, ordered.suffix_with(unique.UNLESS_HELD))
    made = insert.returning(jobs.c.priority, jobs.c.run_at, jobs.c.unique_key).cte()
    return made, made


def _insert(job: Mapping[str, Any], rows: sa.SelectBase) -> sa.Insert:
    return sa.insert(jobs).from_select(list(job), rows, include_defaults=False)


def _wanted(rows: Rows, most_bytes: int, keyed: bool) -> sa.CTE:
    """What tells the rows apart, and the number of the first condition that each is unfit by."""
    number = sa.case(*[(condition, n) for n, condition in enumerate(rows.unfit)]) if rows.unfit else sa.null()
    options = [value.label(name) for name, value in rows.options.items()]
    given = sa.select(rows.args.label("args"), *options, sa.cast(number, sa.Integer).label("problem")).subquery()
    too_long = sa.case((_is_too_long(given.c.args, most_bytes), len(rows.unfit)))
    keys = []
    if keyed:
        key = unique.derived_key(param("kind", sa.Text), given.c.args, param("unique_names", sa.Text))
        keys = [key.label("unique_key"), sa.func.row_number().over().label("ord")]
    problem = sa.func.coalesce(given.c.problem, too_long).label("problem")
    return sa.select(given.c.args, *[given.c[name] for name in rows.options], *keys, problem).cte()


def _is_too_long(args: Any, most_bytes: int) -> sa.ColumnElement[bool]:
    """Whether the JSON text is; written out only where that can be: the size of jsonb costs nothing to know."""
    return sa.case(
        (sa.func.pg_column_size(args) > SURELY_SHORT, sa.func.octet_length(sa.cast(args, sa.Text)) > most_bytes),
        else_=sa.false(),
    )


def _job(wanted: sa.CTE) -> Mapping[str, sa.ColumnElement[Any]]:
    """What is the same for all rows is no part of `wanted`, which the server keeps until it has seen them all."""
    job = {**job_of_binds(), "args": wanted.c.args}
    if "run_at" in wanted.c:
        run_at = sa.func.coalesce(wanted.c.run_at, param("run_at", TIMESTAMP))
        job["run_at"] = due_at(run_at, seconds("delay"))
    if "priority" in wanted.c:
        job["priority"] = sa.func.coalesce(wanted.c.priority, job["priority"])
    if "unique_key" in wanted.c:
        job["unique_key"] = wanted.c.unique_key
    return job


def _told(rows: Rows, made: sa.FromClause) -> sa.SelectBase:
    """One notification for each lane: where rows give no options there is one, and all are due at one time."""
    ours = job_of_binds()
    if not rows.options:
        once = told(ours["queue"], ours["priority"], ours["run_at"])
        return sa.select(NO_NUMBER, NO_ROWS, NOTHING, once).where(sa.exists(made.select()))
    each = sa.select(ours["queue"].label("queue"), made.c.priority, made.c.run_at).subquery()
    return told_by_lane(each, sa.Integer, sa.BigInteger, sa.Text)


def _unfit(wanted: sa.CTE) -> sa.CTE:
    """How many rows are unfit, by what they are unfit by: asked once, not for each of them."""
    problem = wanted.c.problem
    return sa.select(problem, sa.func.count().label("rows")).where(problem.is_not(None)).group_by(problem).cte()


def _missed(wanted: sa.CTE, made: sa.FromClause) -> sa.ScalarSelect[Any]:
    """The first key of which fewer jobs were inserted than wanted."""
    left = sa.except_all(sa.select(wanted.c.unique_key), sa.select(made.c.unique_key)).subquery()
    return sa.select(sa.func.min(unique.bytewise(left.c.unique_key))).scalar_subquery()


def holder() -> sa.Select[tuple[int]]:
    """Who holds a key. Bind: key."""
    return sa.select(jobs.c.id).where(jobs.c.unique_key == param("key", sa.Text))
