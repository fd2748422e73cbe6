"""What the demo asks the database: for its live view, for the kill, and for its summary."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from jobq.statements.binds import param, seconds
from jobq.tables import all_jobs, jobs, workers
from jobq_cli.demo.tables import TIME, Declined, Killed, Order, Receipt, Reindexing, Thumbnail

LOST = "WorkerLost"  # the error of a job whose worker was lost


@cache
def counts() -> sa.Executable:
    """Jobs by how they ended, failed attempts, and the seconds from the first enqueue to the last end."""
    failed = sa.func.jsonb_array_length(all_jobs.c.errors)
    took = sa.func.max(all_jobs.c.finished_at) - sa.func.min(all_jobs.c.created_at)
    return sa.select(
        _count(sa.true(), "jobs"),
        _count(all_jobs.c.state == "done", "done"),
        _count(all_jobs.c.state == "dead", "dead"),
        _count(all_jobs.c.state.in_(["pending", "running"]), "open"),
        sa.cast(sa.func.coalesce(sa.extract("epoch", took), 0), sa.Double).label("seconds"),
        sa.func.coalesce(sa.func.sum(failed), 0).label("failed_attempts"),
        _count(sa.and_(failed > 0, all_jobs.c.state == "done"), "done_after_failures"),
        _count(all_jobs.c.kind == "thumbnail.make", "thumbnail_jobs"),
        _count(all_jobs.c.kind == "search.index", "index_jobs"),
        _count(all_jobs.c.kind == "reminder.send", "scheduled"),
        _count(_is_early(), "started_early"),
    )


@cache
def shop_counts() -> sa.Executable:
    """The shop's tables beside jobq's."""
    once = sa.select(Receipt.order_id).group_by(Receipt.order_id).having(sa.func.count() == 1)
    found = sa.exists().where(all_jobs.c.id == Declined.job_id)
    return sa.select(
        _rows(Order).label("orders"),
        _rows(Receipt).label("receipts"),
        _rows(Order, Order.id.in_(once)).label("orders_with_one_receipt"),
        _rows(Thumbnail).label("thumbnails"),
        _rows(Reindexing).label("wishes"),
        _rows(Reindexing, ~Reindexing.created).label("refused"),
        _rows(Declined, found).label("rolled_back_found"),
    )


@cache
def declined() -> sa.Executable:
    return sa.select(Declined.job_id.label("id")).order_by(Declined.job_id)


@cache
def killed() -> sa.Executable:
    return sa.select(Killed.worker, Killed.pid, Killed.job_ids)


@cache
def dead() -> sa.Executable:
    return sa.select(all_jobs.c.id, all_jobs.c.outcome).where(all_jobs.c.state == "dead").order_by(all_jobs.c.id)


@cache
def rescued() -> sa.Executable:
    """Jobs that were taken back from a worker. Bind: worker."""
    theirs = sa.and_(_said("error") == LOST, _said("worker") == param("worker", sa.Text))
    found = sa.select(all_jobs.c.id, all_jobs.c.state).select_from(_with_errors()).where(theirs)
    return found.distinct().order_by(all_jobs.c.id)


@cache
def recent() -> sa.Executable:
    """The latest ends and failed attempts, the newest first. Bind: most."""
    ended = sa.select(
        all_jobs.c.finished_at.label("at"), all_jobs.c.id, all_jobs.c.kind, all_jobs.c.state, all_jobs.c.outcome
    ).where(all_jobs.c.finished_at.is_not(None))
    failed = sa.select(
        sa.cast(_said("at"), TIME),
        all_jobs.c.id,
        all_jobs.c.kind,
        sa.case((_said("error") == LOST, "rescued"), else_="retry"),
        sa.case((_said("error") == LOST, _said("worker")), else_=_said("error") + ": " + _said("message")),
    ).select_from(_with_errors())
    both = sa.union_all(ended, failed).subquery()
    return sa.select(both).order_by(both.c.at.desc(), both.c.id.desc()).limit(param("most", sa.Integer))


@cache
def holders() -> sa.Executable:
    """Each worker with the number of jobs that it runs; `fresh`: one of them is long and has just begun.

    Bind: just (seconds).
    """
    began = jobs.c.attempted_at > sa.func.clock_timestamp() - seconds("just")
    fresh = sa.func.bool_or(sa.and_(jobs.c.kind == "report.build", began)).label("fresh")
    return sa.select(workers.c.name, sa.func.count().label("held"), fresh).join_from(*_held()).group_by(workers.c.name)


@cache
def held_by() -> sa.Executable:
    """The jobs that a worker holds. Bind: worker."""
    return (
        sa.select(jobs.c.id)
        .join_from(*_held())
        .where(workers.c.name == param("worker", sa.Text))
        .order_by(jobs.c.id)
    )  # fmt: skip


@cache
def connections_of() -> sa.Executable:
    """How many connections a worker has: after its death the server ends what was under way. Bind: worker."""
    activity = sa.table("pg_stat_activity", sa.column("application_name", sa.Text), schema="pg_catalog")
    theirs = activity.c.application_name.startswith(sa.literal("jobq ") + param("worker", sa.Text))
    return sa.select(sa.func.count()).select_from(activity).where(theirs)


def _count(condition: Any, name: str) -> sa.ColumnElement[int]:
    return sa.func.count().filter(condition).label(name)


def _rows(entity: Any, *conditions: Any) -> sa.ScalarSelect[int]:
    return sa.select(sa.func.count()).select_from(entity).where(*conditions).scalar_subquery()


def _held() -> tuple[Any, Any, Any]:
    return jobs, workers, jobs.c.worker_id == workers.c.id


def _is_early() -> sa.ColumnElement[bool]:
    return sa.and_(all_jobs.c.kind == "reminder.send", all_jobs.c.attempted_at < all_jobs.c.run_at)


@cache
def _errors() -> Any:
    entries = sa.func.jsonb_array_elements(all_jobs.c.errors).table_valued(sa.column("value", JSONB))
    return entries.render_derived(name="entry")


def _with_errors() -> Any:
    return all_jobs.join(_errors(), sa.true())


def _said(name: str) -> sa.ColumnElement[str]:
    """A field of a failed attempt."""
    said: sa.ColumnElement[str] = _errors().c.value[name].astext
    return said
