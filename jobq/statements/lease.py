"""A worker's row: register, beat, leave; and the rescue of what lost workers held (DESIGN.md, Lease and rescue)."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.dialects.postgresql import JSONB

from jobq.statements.binds import BIGINTS, ONE, TEXTS, element, param, seconds
from jobq.statements.errors import with_error
from jobq.statements.fence import held
from jobq.statements.finish import SHARED
from jobq.statements.keep import kept
from jobq.tables import finished_jobs, jobs, kinds, slots, workers

DEFAULT_MAX_ATTEMPTS: sa.ColumnElement[int] = sa.literal_column("5")


@cache
def register() -> sa.Executable:
    """Binds: the columns of workers but the times, and lease_seconds."""
    plain = ("id", "name", "hostname", "pid", "version", "concurrency")
    values: dict[str, Any] = {name: param(name, workers.c[name].type) for name in plain}
    values |= {name: param(name, TEXTS) for name in ("queues", "kinds", "schedules")}
    lease = seconds("lease_seconds")
    return sa.insert(workers).values(**values, lease=lease, lease_until=sa.func.now() + lease)


@cache
def beat() -> sa.Executable:
    """Extend the lease. Binds: me, left_behind. No row back: this worker was declared dead."""
    mine = sa.update(workers).where(workers.c.id == param("me", sa.BigInteger))
    left_behind = param("left_behind", sa.Integer)
    return mine.values(lease_until=sa.func.now() + workers.c.lease, left_behind=left_behind).returning(workers.c.id)


@cache
def still_held() -> sa.Executable:
    """Which of the held jobs are still this worker's: the others were cancelled, retried by hand or rescued.

    Binds: worker_id, ids (ascending), attempts.
    """
    return sa.select(jobs.c.id).where(*held())


@cache
def lock_own_row() -> sa.Executable:
    """Waits for a claim in flight, which holds a key-share lock on the row. Binds: me."""
    return sa.select(workers.c.id).where(workers.c.id == param("me", sa.BigInteger)).with_for_update()


@cache
def leave_soon() -> sa.Executable:
    """Wait only briefly for each lock of this transaction."""
    return sa.select(_set_local("lock_timeout", "800ms"))


@cache
def leave() -> sa.Executable:
    """The worker's row goes; no claim can follow. Binds: me."""
    return sa.delete(workers).where(workers.c.id == param("me", sa.BigInteger)).returning(workers.c.id)


@cache
def publish_kind() -> sa.Executable:
    """What a worker's handler says, for rescue, for producers in SQL and for answers; written only where it differs.

    Binds: kind, queue, priority, max_attempts, timeout, keep (intervals or NULL), on_interrupt, unique_names, secrets
    (or NULL).
    """
    values: dict[str, Any] = {c.name: param(c.name, c.type) for c in kinds.c if c.name != "updated_at"}
    insert = pg.insert(kinds).values(**values)
    new = insert.excluded
    names = [name for name in values if name != "kind"]
    differs = sa.or_(*[kinds.c[name].is_distinct_from(new[name]) for name in names])
    changed: dict[str, Any] = {name: new[name] for name in names}
    return insert.on_conflict_do_update(
        index_elements=[kinds.c.kind], set_={**changed, "updated_at": sa.func.now()}, where=differs
    )


# ---- rescue: several statements of one transaction, since one with a CTE does not see a claim still in flight


@cache
def begin_rescue() -> sa.Executable:
    """True for the one rescuer at work: two at once gain nothing. Nothing here may wait long.

    enable_seqscan: the scan for lost ids has no index to go by, and the worker's connections have it off.
    idle_in_transaction_session_timeout: a process frozen in the middle, or whose loop a handler blocks, holds the lock.
    """
    key = sa.func.hashtextextended(sa.literal_column("'jobq rescue'"), sa.literal_column("0"))
    return sa.select(
        sa.func.pg_try_advisory_xact_lock(key),
        _set_local("lock_timeout", "2s"),
        _set_local("idle_in_transaction_session_timeout", "1s"),
        _set_local("enable_seqscan", "on"),
    )


@cache
def delete_lost_workers() -> sa.Executable:
    """Workers whose lease ran out. Binds: connected_seconds, how long this rescuer has had its connection.

    Nobody is declared dead within a lease's time after the server started or the rescuer's own connection came back:
    an outage longer than the lease must not kill the fleet's jobs.
    """
    lost = sa.select(workers.c.id).where(*_is_lost()).with_for_update(skip_locked=True)
    chosen = workers.c.id == sa.any_(sa.func.array(lost.scalar_subquery()))
    return sa.delete(workers).where(chosen).returning(workers.c.id, workers.c.name)


@cache
def lost_workers() -> sa.Executable:
    """How many workers are lost, and the time. Locks nothing. Binds: as of delete_lost_workers."""
    number = sa.select(sa.func.count()).select_from(workers).where(*_is_lost()).scalar_subquery()
    return sa.select(number.label("lost"), sa.func.now().label("at"))


def _is_lost() -> tuple[sa.ColumnElement[bool], ...]:
    now = sa.func.now()
    return (
        workers.c.lease_until < now,
        workers.c.lease < now - sa.func.pg_postmaster_start_time(),
        workers.c.lease < seconds("connected_seconds"),
    )


@cache
def gone_workers() -> sa.Executable:
    """Ids that jobs or slots name and that have no row. An id never comes back, so the list stays true."""

    def of(column: sa.ColumnElement[Any]) -> sa.Select[Any]:
        return sa.select(column.label("id")).where(column.is_not(None), ~sa.exists().where(workers.c.id == column))

    return sa.union(of(jobs.c.worker_id), of(slots.c.worker_id))


@cache
def take_back() -> sa.Executable:
    """Jobs of lost workers become pending with one failure more; locked rows are left for the next pass.

    By the list of ids and never by NOT EXISTS, which is not checked again on a newer row version.
    Binds: gone (ids), names (of those workers, at the same places).
    """
    theirs = jobs.c.worker_id == sa.any_(param("gone", BIGINTS))
    free = sa.select(jobs.c.id).where(theirs).with_for_update(skip_locked=True)
    return (
        sa.update(jobs)
        .where(jobs.c.id == sa.any_(sa.func.array(free.scalar_subquery())), theirs)
        .values(worker_id=sa.null(), failures=jobs.c.failures + ONE, errors=with_error(jobs.c.errors, _worker_lost()))
        .returning(
            jobs.c.id, jobs.c.queue, jobs.c.kind, jobs.c.priority, jobs.c.run_at, jobs.c.attempt,
            _is_spent(), _interrupted(),
        )
    )  # fmt: skip


def _worker_lost() -> sa.ColumnElement[Any]:
    """The error of a job whose worker was lost."""
    position = sa.func.array_position(param("gone", BIGINTS), jobs.c.worker_id, type_=sa.Integer)
    name = element("names", sa.Text, position)
    said = {
        "attempt": jobs.c.attempt,
        "worker": name,
        "error": sa.literal_column("'WorkerLost'", sa.Text),
        "message": sa.literal_column("'worker lost: its lease ran out while it held the job'", sa.Text),
        "traceback": sa.cast(sa.null(), sa.Text),
    }
    pairs = [part for key, value in said.items() for part in (sa.literal_column(f"'{key}'", sa.Text), value)]
    return sa.func.jsonb_build_object(*pairs, type_=JSONB)


def _of_kind(column: sa.ColumnElement[Any]) -> sa.ScalarSelect[Any]:
    return sa.select(column).where(kinds.c.kind == jobs.c.kind).scalar_subquery()


def _is_spent() -> sa.ColumnElement[bool]:
    most = sa.func.coalesce(jobs.c.max_attempts, _of_kind(kinds.c.max_attempts), DEFAULT_MAX_ATTEMPTS)
    return (jobs.c.failures >= most).label("spent")


def _interrupted() -> sa.ColumnElement[bool]:
    fails = _of_kind(kinds.c.on_interrupt) == sa.literal_column("'fail'")
    return sa.func.coalesce(fails, sa.false()).label("interrupted")


@cache
def bury() -> sa.Executable:
    """Move rescued jobs that may not run again to finished_jobs as dead. Binds: ids, outcome, least_seconds."""
    chosen = sa.and_(jobs.c.id == sa.any_(param("ids", BIGINTS)), jobs.c.worker_id.is_(None))
    gone = sa.delete(jobs).where(chosen).returning(*jobs.c).cte("gone")
    rows = sa.select(
        *[gone.c[name] for name in SHARED],
        sa.literal_column("'dead'", sa.Text),
        param("outcome", sa.Text),
        sa.func.now() + kept(gone),
    )
    columns = [*SHARED, "state", "outcome", "expires_at"]
    insert = sa.insert(finished_jobs).from_select(columns, rows, include_defaults=False)
    return insert.add_cte(gone).returning(finished_jobs.c.id)


@cache
def left_behind() -> sa.Executable:
    """How many jobs of lost workers another transaction held locked. Binds: gone (ids)."""
    return sa.select(sa.func.count()).select_from(jobs).where(jobs.c.worker_id == sa.any_(param("gone", BIGINTS)))


def _set_local(name: str, value: str) -> sa.ColumnElement[str]:
    """A setting for the rest of the transaction."""
    return sa.func.set_config(sa.literal_column(f"'{name}'"), sa.literal_column(f"'{value}'"), sa.true())


@cache
def capacity() -> sa.Executable:
    """What the server has room for: max_connections, those kept for superusers, and those in use."""

    def setting(name: str) -> sa.ColumnElement[int]:
        return sa.cast(sa.func.current_setting(sa.literal_column(f"'{name}'")), sa.Integer)

    used = sa.select(sa.func.count()).select_from(sa.table("pg_stat_activity", schema="pg_catalog")).scalar_subquery()
    most, reserved = setting("max_connections"), setting("superuser_reserved_connections")
    return sa.select(most.label("most"), reserved.label("reserved"), used.label("used"))
