"""What the benchmark asks of its own databases, and the rows that it fills them with."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import INTERVAL, JSONB

from jobq.statements.binds import as_interval, param
from jobq.tables import finished_jobs, jobs, leader, workers

_NOW = sa.func.now()
_ARGS = sa.cast(sa.literal_column("'{\"number\": -1}'", sa.Text), JSONB)


def _interval(text: str) -> sa.ColumnElement[Any]:
    return sa.literal_column(f"interval '{text}'", INTERVAL)


def _numbers() -> Any:
    """Rows 1 to n. Bind: n."""
    one = sa.literal_column("1", sa.Integer)
    return sa.func.generate_series(one, param("n", sa.Integer)).table_valued("number").render_derived(name="numbers")


@cache
def add_finished() -> sa.Executable:
    """Jobs that ended in the last day, evenly. Bind: n."""
    number = _numbers()
    n = param("n", sa.Integer)
    at: Any = _NOW - as_interval((n - number.c.number) * sa.literal_column("86400.0", sa.Double) / n)
    values: dict[str, Any] = {
        "id": sa.func.nextval(sa.literal_column("'jobq.jobs_id_seq'")),
        **{name: sa.literal_column(f"'{text}'", sa.Text) for name, text in _ENDED.items()},
        **dict.fromkeys(("priority", "attempt"), sa.literal_column("1")),
        "failures": sa.literal_column("0"),
        "args": _ARGS,
        "meta": _empty("{}"),
        "errors": _empty("[]"),
        **dict.fromkeys(("run_at", "created_at", "attempted_at", "finished_at"), at),
        "expires_at": at + _interval("2 days"),
    }
    rows = sa.select(*values.values()).select_from(number)
    return sa.insert(finished_jobs).from_select(list(values), rows, include_defaults=False)


_ENDED = {"queue": "default", "kind": "noop", "state": "done", "outcome": "ok"}


def _empty(text: str) -> sa.ColumnElement[Any]:
    return sa.cast(sa.literal_column(f"'{text}'", sa.Text), JSONB)


def _add(run_at: Any) -> sa.Executable:
    number = _numbers()
    texts = [sa.literal_column(f"'{_ENDED[name]}'", sa.Text) for name in ("queue", "kind")]
    rows = sa.select(*texts, _ARGS, run_at(number.c.number)).select_from(number)
    return sa.insert(jobs).from_select(["queue", "kind", "args", "run_at"], rows)


@cache
def add_future() -> sa.Executable:
    """Jobs that are scheduled for tomorrow, a second apart. Bind: n."""
    return _add(lambda number: _NOW + _interval("1 day") + as_interval(number))


@cache
def add_due() -> sa.Executable:
    """Jobs that are due. Bind: n."""
    return _add(lambda _number: _NOW)


@cache
def open_among() -> sa.Executable:
    """How many jobs of a range of ids have not ended. Binds: first, last."""
    here = jobs.c.id.between(param("first", sa.BigInteger), param("last", sa.BigInteger))
    return sa.select(sa.func.count()).select_from(jobs).where(here)


@cache
def open_jobs() -> sa.Executable:
    """How many jobs have not ended."""
    return sa.select(sa.func.count()).select_from(jobs)


@cache
def claimed_jobs() -> sa.Executable:
    """How many jobs workers have, begun or not."""
    return sa.select(sa.func.count()).select_from(jobs).where(jobs.c.worker_id.is_not(None))


@cache
def queues_of() -> sa.Executable:
    """The queues that have open jobs."""
    return sa.select(jobs.c.queue).distinct()


@cache
def workers_up() -> sa.Executable:
    """How many workers have a row."""
    return sa.select(sa.func.count()).select_from(workers)


@cache
def is_summed_up() -> sa.Executable:
    """Whether what ended has been summed up, but for the last minutes."""
    return sa.select(sa.func.coalesce(sa.func.bool_and(leader.c.summed_until > _NOW - _interval("3 minutes")), False))


@cache
def newest_id() -> sa.Executable:
    """The highest id that was given out; 0 at the start."""
    sequence = sa.table("jobs_id_seq", sa.column("last_value", sa.BigInteger), schema="jobq")
    return sa.select(sequence.c.last_value)


@cache
def bare_insert() -> sa.Executable:
    """The row that an enqueue writes, inserted as an application inserts its own. Binds: the columns."""
    names = ("queue", "kind", "args", "priority", "max_attempts", "callsite", "meta")
    values = {name: sa.bindparam(name, type_=jobs.c[name].type) for name in names}
    return sa.insert(jobs).values(values).returning(jobs.c.id)


@cache
def transactions() -> sa.Executable:
    """How many transactions have ended in a database. Bind: name."""
    table = sa.table(
        "pg_stat_database", sa.column("datname"), sa.column("xact_commit"), sa.column("xact_rollback"),
        schema="pg_catalog",
    )  # fmt: skip
    total = table.c.xact_commit + table.c.xact_rollback
    return sa.select(sa.cast(total, sa.BigInteger)).where(table.c.datname == param("name", sa.Text))


@cache
def backend() -> sa.Executable:
    """The process that serves this connection."""
    return sa.select(sa.func.pg_backend_pid())


@cache
def setting() -> sa.Executable:
    """Bind: name."""
    return sa.select(sa.func.current_setting(param("name", sa.Text)))
