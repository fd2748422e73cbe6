"""The statements that insert many jobs of one kind: arrays of one length, unnested in the order of the rows."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from jobq.statements import unique
from jobq.statements.binds import as_interval, json_param, param
from jobq.statements.enqueue import COLUMNS, NOTHING, due_at, inserted, job_of_binds, not_after
from jobq.statements.notify import told
from jobq.tables import TIMESTAMP, jobs

# Each array's bind is named after its field.
FIELDS: dict[str, Any] = {
    "queue": sa.Text,
    "args": sa.Text,
    "priority": sa.SmallInteger,
    "run_at": TIMESTAMP,
    "delay": sa.Double,
    "max_attempts": sa.Integer,
    "meta": sa.Text,
}
KEY_FIELDS: dict[str, Any] = {"args": sa.Text, "unique_key": sa.Text, "unique_names": sa.Text}
KEYED_FIELDS: dict[str, Any] = {**FIELDS, **KEY_FIELDS, "max_wait": sa.Double}


@cache
def enqueue_rows() -> sa.Executable:
    """Jobs without keys. Binds: an array for each of FIELDS, and kind, callsite, channel.

    Rows: the ids, and a NULL for each lane. Ids are given in the order of the rows: sorted, they fit the input.
    """
    row = unnested(FIELDS)
    job = {**_job(row), "unique_key": NOTHING}
    fresh = inserted(sa.select(*[job[name] for name in COLUMNS]).order_by(row.c.ord))
    return sa.union_all(sa.select(fresh.c.id, NOTHING.label("told")), told_by_lane(fresh, sa.BigInteger))


@cache
def enqueue_alike() -> sa.Executable:
    """Jobs without keys that differ in nothing but their args. Binds: as `enqueue`, but args is an array of objects.

    One JSON text in place of an array of texts: a driver takes longer to write an array than the server to read it.
    They are all of one lane, and due at one time, so that they are told of without reading what was inserted: the
    subquery is asked once. Rows: the ids, given in the order of the array.
    """
    each = sa.func.jsonb_array_elements(json_param("args"))
    row = each.table_valued(sa.column("args", JSONB), with_ordinality="ord").render_derived(name="row")
    alike = job_of_binds()
    job = {**alike, "args": row.c.args}
    rows = sa.select(*job.values()).order_by(row.c.ord)
    once = sa.select(told(alike["queue"], alike["priority"], alike["run_at"])).scalar_subquery()
    return sa.insert(jobs).from_select(list(job), rows, include_defaults=False).returning(jobs.c.id, once.label("told"))


@cache
def enqueue_keyed_rows() -> sa.Executable:
    """Jobs with keys. Binds: an array for each of KEYED_FIELDS, and kind, callsite, channel.

    Inserted in the order of the keys, so that two callers cannot wait for each other. Rows: ord (from 1), id, created,
    unique_key; equal keys share one job, the first row's. `id` is NULL where the holder came or went during the
    statement, `ord` where the row only tells a lane.
    """
    row = unnested(KEYED_FIELDS)
    job = {**_job(row), "unique_key": _key(row)}
    job["run_at"] = not_after(job["run_at"], sa.func.now() + as_interval(row.c.max_wait))
    wanted = sa.select(row.c.ord, *[job[name].label(name) for name in COLUMNS]).cte("wanted")
    ordered = sa.select(*[wanted.c[name] for name in COLUMNS]).order_by(
        unique.bytewise(wanted.c.unique_key), wanted.c.ord
    )
    fresh = inserted(ordered.suffix_with(unique.UNLESS_HELD))
    holder = sa.select(jobs.c.id).where(jobs.c.unique_key == wanted.c.unique_key).scalar_subquery()
    answers = sa.select(
        wanted.c.ord,
        sa.func.coalesce(fresh.c.id, holder).label("id"),
        fresh.c.id.is_not(None).label("created"),
        wanted.c.unique_key,
        NOTHING.label("told"),
    ).select_from(wanted.outerjoin(fresh, fresh.c.unique_key == wanted.c.unique_key))
    return sa.union_all(answers, told_by_lane(fresh, sa.BigInteger, sa.BigInteger, sa.Boolean, sa.Text))


@cache
def keys_of_rows() -> sa.SelectBase:
    """The keys that rows will have, to sort more rows than one statement takes. Binds: KEY_FIELDS as arrays, kind.

    Rows: ord (from 1), unique_key.
    """
    row = unnested(KEY_FIELDS)
    return sa.select(row.c.ord, _key(row).label("unique_key"))


def unnested(fields: dict[str, Any]) -> sa.TableValuedAlias:
    """Arrays as rows. Binds: an array for each field; its column has that name, and `ord` counts from 1."""
    arrays = [param(name, ARRAY(type_)) for name, type_ in fields.items()]
    columns = [sa.column(name, type_) for name, type_ in fields.items()]
    return sa.func.unnest(*arrays).table_valued(*columns, with_ordinality="ord").render_derived(name="row")


def _key(row: sa.TableValuedAlias) -> sa.ColumnElement[Any]:
    kind = param("kind", sa.Text)
    return unique.key(row.c.unique_key, kind, sa.cast(row.c.args, JSONB), row.c.unique_names)


def _job(row: sa.TableValuedAlias) -> dict[str, Any]:
    return {
        "queue": row.c.queue,
        "kind": param("kind", sa.Text),
        "args": sa.cast(row.c.args, JSONB),
        "priority": row.c.priority,
        "run_at": due_at(row.c.run_at, as_interval(row.c.delay)),
        "max_attempts": row.c.max_attempts,
        "callsite": param("callsite", sa.Text),
        "meta": sa.cast(row.c.meta, JSONB),
    }


def told_by_lane(fresh: sa.FromClause, *padding: Any) -> sa.SelectBase:
    """One notification per lane of the statement, of its earliest due job; a job that is not due tells nobody."""
    due = (
        sa.select(fresh.c.queue, fresh.c.priority, sa.func.min(fresh.c.run_at).label("run_at"))
        .where(fresh.c.run_at <= sa.func.now())
        .group_by(fresh.c.queue, fresh.c.priority)
        .subquery("lane")
    )
    nulls = [sa.cast(sa.null(), type_) for type_ in padding]
    return sa.select(*nulls, told(due.c.queue, due.c.priority, due.c.run_at))
