"""Statements that look at jobs, and repair them by hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from jobq.statements.binds import BIGINTS, TEXTS, ZERO, param
from jobq.statements.choose import Predicate, column, onto, table_for
from jobq.statements.keep import kept
from jobq.statements.notify import told, told_of_taken
from jobq.tables import all_jobs, finished_jobs, jobs, kinds, leader, workers

# Read as text and decoded job by job: one row that Python cannot parse must not break the reading of the others.
AS_TEXT = frozenset({"args", "meta", "errors", "result"})
STANDING = ("id", "state", "outcome", "finished_at", "unique_key")
SHARED = [each.name for each in jobs.c]
DONE = sa.literal_column("'done'", sa.Text)
REPORTS = sa.cast(sa.literal_column("'{progress,checkpoint}'", sa.Text), TEXTS)


@cache
def read_one() -> Any:
    """A job by its id, whole: from both tables in one statement, or one that moves meanwhile is missed. Bind: id."""
    return _columns(all_jobs, AS_TEXT).where(all_jobs.c.id == param("id", sa.BigInteger))


def read(predicates: Sequence[Predicate], limit: int | None) -> Any:
    """Whole jobs, the newest first."""
    return _matching(predicates, AS_TEXT, limit)


def read_brief(predicates: Sequence[Predicate], limit: int | None, *, oldest_first: bool = False) -> Any:
    """Jobs without args, meta, errors and result, which may be large; of meta the progress."""
    brief = _matching(predicates, frozenset(), limit, oldest_first=oldest_first)
    meta = column(table_for(predicates), "meta")
    return brief.add_columns(sa.cast(meta[sa.literal_column("'progress'", sa.Text)], sa.Text).label("progress"))


@cache
def secrets() -> sa.Executable:
    """What workers say of the secret arguments of kinds, by commas. Bind: kind, NULL for all of them."""
    kind = sa.func.coalesce(param("kind", sa.Text), kinds.c.kind)
    return sa.select(kinds.c.secrets).where(kinds.c.kind == kind, kinds.c.secrets.is_not(None))


def extent(table: sa.Table, predicates: Sequence[Predicate]) -> sa.Executable:
    """How many rows of `table` the predicates choose, and the highest id of them."""
    numbers = [sa.func.count().label("matched"), sa.func.coalesce(sa.func.max(table.c.id), ZERO).label("highest")]
    return sa.select(*numbers).select_from(table).where(*onto(table, predicates))


def next_ids(table: sa.Table, predicates: Sequence[Predicate], size: int) -> sa.Executable:
    """The next ids that the predicates choose, ascending. Binds: after, upto."""
    after, upto = param("after", sa.BigInteger), param("upto", sa.BigInteger)
    chosen = sa.select(table.c.id).where(*onto(table, predicates), table.c.id > after, table.c.id <= upto)
    return chosen.order_by(table.c.id).limit(size)


@cache
def standing() -> sa.Executable:
    """Where jobs stand, for a refusal's text. Bind: ids."""
    return sa.select(*[all_jobs.c[name] for name in STANDING]).where(all_jobs.c.id == sa.any_(param("ids", BIGINTS)))


def left(predicates: Sequence[Predicate]) -> sa.Executable:
    """What a retry by predicates has left in finished_jobs: their keys are taken."""
    columns = [finished_jobs.c[name] for name in STANDING]
    return sa.select(*columns).where(*onto(finished_jobs, predicates)).order_by(finished_jobs.c.id)


@cache
def holders() -> sa.Executable:
    """The open jobs that hold unique keys. Bind: keys."""
    return sa.select(jobs.c.unique_key, jobs.c.id).where(jobs.c.unique_key == sa.any_(param("keys", TEXTS)))


@cache
def retry_ids() -> sa.Executable:
    """Binds: ids, channel."""
    return _retry([finished_jobs.c.id == sa.any_(param("ids", BIGINTS))])


def retry_where(predicates: Sequence[Predicate]) -> sa.Executable:
    """Bind: channel."""
    return _retry(onto(finished_jobs, predicates))


@cache
def cancel_ids() -> sa.Executable:
    """Binds: ids, running, least_seconds, channel."""
    return _cancel([jobs.c.id == sa.any_(param("ids", BIGINTS))])


def cancel_where(predicates: Sequence[Predicate]) -> sa.Executable:
    """Binds: running, least_seconds, channel."""
    return _cancel(onto(jobs, predicates))


@cache
def read_workers() -> sa.Executable:
    """Every worker that has a row, the oldest first; one scan of `jobs` counts what they run."""
    runs = (
        sa.select(jobs.c.worker_id, sa.func.count().label("running"))
        .where(jobs.c.worker_id.is_not(None))
        .group_by(jobs.c.worker_id)
        .subquery("runs")
    )
    alive = (workers.c.lease_until > sa.func.now()).label("alive")
    running = sa.func.coalesce(runs.c.running, sa.literal_column("0")).label("running")
    in_office = sa.exists().where(leader.c.worker_id == workers.c.id, leader.c.lease_until > sa.func.now())
    found = sa.select(*workers.c, alive, in_office.label("is_leader"), running, sa.func.now().label("read_at"))
    return found.outerjoin_from(workers, runs, runs.c.worker_id == workers.c.id).order_by(workers.c.started_at)


def _columns(table: sa.Table, texts: frozenset[str]) -> Any:
    names = [each.name for each in all_jobs.c if each.name in texts or each.name not in AS_TEXT]
    return sa.select(*[_readable(column(table, name), name).label(name) for name in names])


def _readable(found: sa.ColumnElement[Any], name: str) -> sa.ColumnElement[Any]:
    return sa.cast(found, sa.Text) if name in AS_TEXT else found


def _matching(
    predicates: Sequence[Predicate], texts: frozenset[str], limit: int | None, *, oldest_first: bool = False
) -> Any:
    table = table_for(predicates)
    order = table.c.id.asc() if oldest_first else table.c.id.desc()
    return _columns(table, texts).where(*onto(table, predicates)).order_by(order).limit(limit)


def _retry(where: Sequence[Predicate]) -> sa.Executable:
    """Insert first, delete only what went in: the other way round, a job whose key is taken would be lost.

    Failures count from zero; `attempt` keeps growing, or a worker that still believes in an old one passes the fence.
    What is done begins anew: from its last checkpoint there would be nothing left to do.
    """
    chosen = sa.select(finished_jobs).where(*where).order_by(finished_jobs.c.id).with_for_update().cte("chosen")
    fresh: dict[str, Any] = {
        "run_at": sa.func.now(),
        "failures": sa.literal_column("0"),
        "worker_id": sa.cast(sa.null(), sa.BigInteger),
        "meta": sa.case((chosen.c.state == DONE, chosen.c.meta.op("-")(REPORTS)), else_=chosen.c.meta),
    }
    rows = sa.select(*[fresh.get(name, chosen.c[name]) for name in SHARED])
    back = (
        postgresql.insert(jobs)
        .from_select(SHARED, rows, include_defaults=False)
        .on_conflict_do_nothing()
        .returning(jobs.c.id, jobs.c.queue, jobs.c.priority, jobs.c.run_at)
        .cte("back")
    )
    gone = sa.delete(finished_jobs).where(finished_jobs.c.id == back.c.id)
    return gone.returning(finished_jobs.c.id, told(back.c.queue, back.c.priority, back.c.run_at))


def _cancel(where: Sequence[Predicate]) -> sa.Executable:
    """One statement: whoever locks a row first wins, a claim or this; the fence refuses the worker's later write.

    Workers that lose a job by it are told: PostgreSQL folds what is equal, so each of them once, however many jobs.
    """
    waits = sa.or_(jobs.c.worker_id.is_(None), param("running", sa.Boolean))
    gone = sa.delete(jobs).where(*where, waits).returning(*jobs.c).cte("gone")
    state, outcome = sa.literal_column("'cancelled'", sa.Text), sa.literal_column("'err: cancelled'", sa.Text)
    ended = [state, outcome, sa.func.now() + kept(gone)]
    rows = sa.select(*[gone.c[name] for name in SHARED], *ended)
    names = [*SHARED, "state", "outcome", "expires_at"]
    insert = sa.insert(finished_jobs).from_select(names, rows, include_defaults=False)
    return insert.returning(finished_jobs.c.id, told_of_taken(finished_jobs.c.worker_id))
