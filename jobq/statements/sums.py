"""What ended, by the minute and by the hour: summed once by the leader, read by stats (DESIGN.md, Sums)."""

from __future__ import annotations

from functools import cache
from math import log
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.dialects.postgresql import ARRAY, INTERVAL

from jobq.histogram import PER_OCTAVE
from jobq.statements.binds import param
from jobq.statements.leader import NAME, in_office, summing
from jobq.statements.outcome import word_of
from jobq.tables import TIMESTAMP, finished_jobs, leader, sums

FEW = sa.literal_column("50000", sa.Integer)
_NOW = sa.func.now()
_KINDRED = ("starts_at", "queue", "kind", "state", "word")
_ALL = ("minutes", *_KINDRED, "finished", "longest", "buckets", "counts")


def interval(text: str) -> sa.ColumnElement[Any]:
    """A span of time that is written into the statement."""
    return sa.literal_column(f"interval '{text}'", INTERVAL)


def start_of(unit: str, at: Any) -> sa.ColumnElement[Any]:
    """The start of a minute or an hour in UTC: workers whose sessions have other time zones sum the same ones."""
    utc = sa.literal_column("'UTC'", sa.Text)
    return sa.func.date_trunc(sa.literal_column(f"'{unit}'", sa.Text), at, utc, type_=TIMESTAMP)


@cache
def prepare() -> sa.Executable:
    """For the transaction: the index of finished_at is read by bitmap alone, which the worker's connections avoid.

    And no other scan: the index of `recent` ends in finished_at, and the planner may read it from end to end for that.
    """
    switches = {"enable_bitmapscan": "on", "enable_indexscan": "off"}
    return sa.select(*[sa.func.set_config(_text(name), _text(value), sa.true()) for name, value in switches.items()])


def _text(value: str) -> sa.ColumnElement[str]:
    return sa.literal_column(f"'{value}'")


@cache
def window() -> sa.Executable:
    """Which minutes are to be summed now: from `since` up to `until`, `is_last` when none are left after those.

    A minute is summed 15 s after its end, and once more with the next one: a commit may be late. A leader that finds
    nothing summed starts a day ago; ten minutes at a time, or all at once where few jobs ended. No row: nothing to do.
    """
    target = start_of("minute", _NOW - interval("15 seconds"))
    since = sa.func.greatest(leader.c.summed_until - interval("1 minute"), target - interval("1 day"))
    to_do = sa.or_(leader.c.summed_until.is_(None), leader.c.summed_until < target)
    due = sa.select(since.label("since"), target.label("target")).where(leader.c.name == NAME, to_do).subquery("due")
    part = due.c.since + interval("10 minutes")
    until = sa.case((sa.or_(due.c.target <= part, _ended_few(due)), due.c.target), else_=part)
    return sa.select(due.c.since, until.label("until"), (until == due.c.target).label("is_last"))


def _ended_few(due: Any) -> sa.ColumnElement[bool]:
    within = sa.and_(finished_jobs.c.finished_at >= due.c.since, finished_jobs.c.finished_at < due.c.target)
    some: Any = sa.select(sa.literal_column("1")).select_from(finished_jobs).where(within).limit(FEW).correlate(due)
    number = sa.select(sa.func.count()).select_from(some.subquery()).correlate(due).scalar_subquery()
    return number < FEW


@cache
def sum_minutes() -> sa.Executable:
    """Sum the minutes of a window, by the leader. Binds: since, until, me, the_term. No row back: deposed."""
    office = summing(param("until", TIMESTAMP)).cte("office")
    counted = _counted()
    filled = counted.c.bucket.is_not(None)
    rows = sa.select(
        sa.literal_column("1", sa.SmallInteger),
        *[counted.c[name] for name in _KINDRED],
        sa.func.sum(counted.c.n),
        sa.func.max(counted.c.longest),
        _listed(counted.c.bucket, counted.c.bucket, filled),
        _listed(counted.c.n, counted.c.bucket, filled),
    )
    rows = rows.select_from(counted.join(office, sa.true())).group_by(*[counted.c[name] for name in _KINDRED])
    return sa.select(office.c.term).add_cte(_written(rows).cte("written"))


@cache
def sum_hours() -> sa.Executable:
    """Sum the hours of a window anew from their minutes, by the leader. Binds: since, until, me, the_term."""
    hour = start_of("hour", sums.c.starts_at).label("starts_at")
    key = [hour, *[sums.c[name] for name in _KINDRED[1:]]]
    since, until = param("since", TIMESTAMP), param("until", TIMESTAMP)
    minutes = sa.and_(
        sums.c.minutes == sa.literal_column("1"),
        sums.c.starts_at >= start_of("hour", since),
        sums.c.starts_at < start_of("hour", until) + interval("1 hour"),
        in_office(),
    )
    whole = sa.select(
        *key, sa.func.sum(sums.c.finished).label("finished"), sa.func.max(sums.c.longest).label("longest")
    )
    whole_ = whole.where(minutes).group_by(*key).subquery("whole")
    filled = filled_of(sums)
    spread = sa.select(*key, filled.c.bucket, sa.cast(sa.func.sum(filled.c.n), sa.Integer).label("n"))
    spread_ = spread.select_from(sums.join(filled, sa.true())).where(minutes).group_by(*key, filled.c.bucket)
    parts = spread_.subquery("parts")
    same = sa.and_(*[whole_.c[name] == parts.c[name] for name in _KINDRED])
    there = parts.c.bucket.is_not(None)
    rows = sa.select(
        sa.literal_column("60", sa.SmallInteger),
        *whole_.c,
        _listed(parts.c.bucket, parts.c.bucket, there),
        _listed(parts.c.n, parts.c.bucket, there),
    )
    return _written(rows.select_from(whole_.outerjoin(parts, same)).group_by(*whole_.c))


def _written(rows: sa.Select[Any]) -> pg.Insert:
    """What is summed again never loses what it had: jobs may have been retried by hand, or deleted, meanwhile."""
    insert = pg.insert(sums).from_select(list(_ALL), rows, include_defaults=False)
    numbers = _ALL[1 + len(_KINDRED) :]
    return insert.on_conflict_do_update(
        index_elements=list(sums.primary_key.columns),
        set_={name: insert.excluded[name] for name in numbers},
        where=insert.excluded.finished > sums.c.finished,
    )


def _counted() -> sa.Subquery:
    """The jobs of a window by all that they are told apart by. Binds: since, until."""
    ended = finished_jobs.c
    took = took_of(ended)
    columns = [
        start_of("minute", ended.finished_at).label("starts_at"),
        ended.queue, ended.kind, ended.state, word_of(ended.outcome).label("word"), bucket_of(took).label("bucket"),
    ]  # fmt: skip
    numbers = [sa.cast(sa.func.count(), sa.Integer).label("n"), sa.func.max(took).label("longest")]
    within = sa.and_(ended.finished_at >= param("since", TIMESTAMP), ended.finished_at < param("until", TIMESTAMP))
    return sa.select(*columns, *numbers).where(within).group_by(*columns).subquery("counted")


def _listed(value: Any, order: Any, where: Any) -> sa.ColumnElement[Any]:
    """The values in order, as an array; empty when there are none."""
    in_order: Any = pg.aggregate_order_by
    empty = sa.literal_column("'{}'", ARRAY(sa.Integer))
    return sa.func.coalesce(sa.func.array_agg(in_order(value, order)).filter(where), empty)


def took_of(ended: Any) -> sa.ColumnElement[Any]:
    """How long the last attempt took of a job that ended by running; NULL for the others."""
    ran = ended.state.in_([sa.literal_column("'done'", sa.Text), sa.literal_column("'dead'", sa.Text)])
    took = sa.func.greatest(ended.finished_at - ended.attempted_at, interval("0"))  # which is 0 of NULL
    return sa.case((sa.and_(ran, ended.attempted_at.is_not(None)), took))


def bucket_of(took: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    """The number of the bucket that a span falls in; NULL for none (jobq/histogram.py)."""
    milliseconds = sa.cast(sa.extract("epoch", took), sa.Double) * _float(1000.0)
    number = sa.func.floor(sa.func.ln(sa.func.greatest(milliseconds, _float(1.0))) * _float(PER_OCTAVE / log(2)))
    return sa.case((took.is_not(None), sa.cast(number, sa.SmallInteger)))


def filled_of(table: Any) -> Any:
    """The buckets of a row of sums, as rows (bucket, n)."""
    columns = sa.column("bucket", sa.SmallInteger), sa.column("n", sa.Integer)
    pairs = sa.func.unnest(table.c.buckets, table.c.counts).table_valued(*columns)
    return pairs.render_derived(name="filled")


@cache
def totals() -> sa.Executable:
    """What ended in this hour and the 24 before it, by queue, kind, state and word; and up to when it is summed.

    In one statement, or a minute that is summed meanwhile would count twice or not at all. Without sums a row of NULLs.
    """
    names = [sums.c[name] for name in _KINDRED[1:]]
    counted = sa.select(*names, sa.func.sum(sums.c.finished).label("finished"))
    counted_ = counted.where(*_hours("24 hours")).group_by(*names).subquery("counted")
    until = sa.select(leader.c.summed_until).where(leader.c.name == NAME).scalar_subquery()
    one = sa.select(until.label("summed_until")).subquery("one")
    return sa.select(one.c.summed_until, *counted_.c).select_from(one.outerjoin(counted_, sa.true()))


@cache
def durations() -> sa.Executable:
    """How long attempts took that ended in this hour and the one before, by kind and bucket, as far as it is summed."""
    filled = filled_of(sums)
    numbers = [sa.func.sum(filled.c.n).label("n"), sa.func.max(sums.c.longest).label("longest")]
    counted = sa.select(sums.c.kind, filled.c.bucket, *numbers).select_from(sums.join(filled, sa.true()))
    return counted.where(*_hours("1 hour")).group_by(sums.c.kind, filled.c.bucket)


def _hours(before: str) -> tuple[sa.ColumnElement[bool], ...]:
    return sums.c.minutes == sa.literal_column("60"), sums.c.starts_at >= start_of("hour", _NOW) - interval(before)


def _float(value: float) -> sa.ColumnElement[float]:
    return sa.literal_column(f"double precision '{value!r}'", sa.Double)
