"""Ending a claimed job, or giving it back. Every statement is fenced by id, attempt and worker."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.sql.dml import ReturningInsert

from jobq.statements.binds import (
    BIGINTS,
    INTEGERS,
    PLACES,
    SMALLINTS,
    TEXTS,
    TIMES,
    as_interval,
    element,
    json_param,
    listed,
    param,
    seconds,
)
from jobq.statements.claim import place_of
from jobq.statements.notify import payload, told
from jobq.statements.queues import pause_for
from jobq.statements.slots import freeing
from jobq.tables import TIMESTAMP, finished_jobs, jobs

SHARED = tuple(column.name for column in jobs.c)
MOST_ERRORS: sa.ColumnElement[int] = sa.literal_column("25")


def place(id_: sa.ColumnElement[int] = jobs.c.id) -> sa.ColumnElement[int]:
    """Where a row's id stands in the bind `ids`, from 1: its attempt, state and outcome stand at the same place.

    Not a join with unnest(): the planner believes that one row is running and may go quadratic.
    """
    ids = sa.select(param("ids", BIGINTS)).scalar_subquery()
    return sa.func.width_bucket(id_, ids, type_=sa.Integer)


def held(worker: str = "worker_id") -> tuple[sa.ColumnElement[bool], ...]:
    """The fence for many jobs. Binds: worker_id (or as `worker` says), ids (ascending), attempts."""
    return (
        jobs.c.id == sa.any_(param("ids", BIGINTS)),
        jobs.c.attempt == element("attempts", sa.Integer, place()),
        jobs.c.worker_id == param(worker, sa.BigInteger),
    )


def still_mine() -> tuple[sa.ColumnElement[bool], ...]:
    """The fence for one job. Binds: id, attempt, worker_id (prefixed, as an UPDATE's own columns share the names)."""
    return (
        jobs.c.id == param("the_id", sa.BigInteger),
        jobs.c.attempt == param("the_attempt", sa.Integer),
        jobs.c.worker_id == param("the_worker_id", sa.BigInteger),
    )


def with_error(errors: Any, error: Any) -> sa.ColumnElement[Any]:
    """The history with one more failed attempt, stamped by the database; the oldest is dropped past 25."""
    stamped = error.op("||")(sa.func.jsonb_build_object(sa.literal_column("'at'"), sa.func.now()))
    full = sa.func.jsonb_array_length(errors) >= MOST_ERRORS
    oldest_dropped = errors.op("-")(sa.literal_column("0", sa.Integer))
    return sa.type_coerce(sa.case((full, oldest_dropped), else_=errors).op("||")(stamped), JSONB)


@cache
def finish() -> sa.Executable:
    """Move ended jobs to finished_jobs, in one statement for any mix of attempts, states and outcomes.

    Binds: worker_id, and of equal length, by ascending id: ids, attempts, states, outcomes, errors (JSON text; NULL:
    no failure), keeps (seconds), results (JSON text or NULL; the array NULL: none has one). Returns the ids that were
    still ours; the others were fenced off.
    """
    return _finish()


@cache
def finish_done() -> sa.Executable:
    """`finish` for jobs that ended well and are where their claim put them, at half its cost: one state, no errors.

    Not through the index of ids, as in a claim. Who is found is asked for its id: another job may have come to a place
    that one has left.

    Binds: worker_id, keep (seconds), and of equal length, by ascending id: ids, attempts, places (each as text,
    `{1,2}`), outcomes (a list; NULL: none has a text). One row: how many were ours and there, and their ids, NULL where
    all were.
    """
    ids, attempts, places = listed("ids", BIGINTS), listed("attempts", INTEGERS), listed("places", PLACES)
    all_ids = sa.type_coerce(sa.select(ids).scalar_subquery(), BIGINTS)
    at = sa.func.width_bucket(jobs.c.id, all_ids, type_=sa.Integer)
    same_attempt = jobs.c.attempt == sa.type_coerce(sa.select(attempts).scalar_subquery(), INTEGERS)[at]
    mine = jobs.c.worker_id == param("worker_id", sa.BigInteger)
    gone = (
        sa.delete(jobs)
        .where(place_of(jobs.name) == sa.any_(places), jobs.c.id == all_ids[at], same_attempt, mine)
        .returning(*jobs.c, at.label("place"))
        .cte("gone")
    )
    rows = sa.select(
        *[gone.c[name] for name in SHARED],
        sa.literal_column("'done'"),
        element("outcomes", sa.Text, gone.c.place),
        sa.func.statement_timestamp(),
        sa.func.now() + seconds("keep"),
    )
    columns = [*SHARED, "state", "outcome", "finished_at", "expires_at"]
    insert = sa.insert(finished_jobs).from_select(columns, rows, include_defaults=False)
    ended = insert.add_cte(gone).returning(finished_jobs.c.id).cte("ended")
    number = sa.func.count()
    some = sa.case((number < sa.func.cardinality(all_ids), sa.func.array_agg(ended.c.id)))
    return sa.select(number, some).select_from(ended)


@cache
def finish_limited() -> sa.Executable:
    """`finish` for one job of a limited queue, with its slot. Binds: those of `finish` and of `freeing`."""
    return _finish().add_cte(freeing())


def _finish() -> ReturningInsert[tuple[int]]:
    gone = sa.delete(jobs).where(*held()).returning(*jobs.c, place().label("place")).cte("gone")
    at = gone.c.place
    error = sa.cast(element("errors", sa.Text, at), JSONB)
    failed = error.is_not(None)
    changed = {
        "failures": gone.c.failures + sa.cast(failed, sa.Integer),
        "errors": sa.case((failed, with_error(gone.c.errors, error)), else_=gone.c.errors),
    }
    keep = as_interval(element("keeps", sa.Double, at))
    rows = sa.select(
        *[changed.get(name, gone.c[name]) for name in SHARED],
        element("states", sa.Text, at),
        element("outcomes", sa.Text, at),
        sa.func.statement_timestamp(),  # now() is the start of the transaction: a handler's own may be long
        sa.func.now() + keep,
        sa.cast(element("results", sa.Text, at), JSONB),
    )
    columns = [*SHARED, "state", "outcome", "finished_at", "expires_at", "result"]
    insert = sa.insert(finished_jobs).from_select(columns, rows, include_defaults=False)
    return insert.add_cte(gone).returning(finished_jobs.c.id)


@cache
def put_back() -> sa.Executable:
    """Make one job pending again after a failure or a snooze.

    Binds: the_id, the_attempt, the_worker_id, delay (seconds; NULL: run_at stays), error (JSON text; NULL: no failure).
    """
    return _put_back().returning(jobs.c.id)


@cache
def put_back_limited() -> sa.Executable:
    """`put_back` for a job of a limited queue, with its slot. Binds: those of `put_back` and of `freeing`."""
    return _put_back().returning(jobs.c.id).add_cte(freeing())


@cache
def pause_and_put_back() -> sa.Executable:
    """Pause a job's queue and make the job pending again, in one statement: whoever sees the job sees the pause.

    One row: `id` NULL when the job was no longer ours; `began`: the queue was not paused before.
    Binds: those of `put_back`, `freeing` and `pause_for`, and channel.
    """
    paused = pause_for().cte("paused")
    back = _put_back().returning(jobs.c.id, jobs.c.queue, jobs.c.priority, jobs.c.run_at).cte("back")
    told_of = told(back.c.queue, back.c.priority, back.c.run_at)
    rows = paused.outerjoin(back, sa.true())
    return sa.select(back.c.id, paused.c.began, told_of).select_from(rows).add_cte(freeing())


def _put_back() -> sa.Update:
    error = json_param("error")
    failed = error.is_not(None)
    later = sa.func.now() + seconds("delay")
    return (
        sa.update(jobs)
        .where(*still_mine())
        .values(
            worker_id=sa.null(),
            run_at=sa.func.coalesce(later, jobs.c.run_at),
            failures=jobs.c.failures + sa.cast(failed, sa.Integer),
            errors=sa.case((failed, with_error(jobs.c.errors, error)), else_=jobs.c.errors),
        )
    )


@cache
def give_back() -> sa.Executable:
    """Make held jobs pending again at no cost in failures. Binds: worker_id, ids (ascending), attempts."""
    given = sa.update(jobs).where(*held()).values(worker_id=sa.null())
    return given.returning(jobs.c.id, jobs.c.queue, jobs.c.priority, jobs.c.run_at)


@cache
def give_back_unknown() -> sa.Executable:
    """Make pending what carries this worker's id and is not among `ids` in that attempt: a claim's answer was lost.

    Binds: me, ids (ascending), attempts.
    """
    mine = held("me")
    given = sa.update(jobs).where(mine[-1], sa.not_(sa.and_(*mine[:-1]))).values(worker_id=sa.null())
    return given.returning(jobs.c.id, jobs.c.queue, jobs.c.priority, jobs.c.run_at)


def _done_by_us() -> tuple[sa.ColumnElement[bool], ...]:
    """The fence for one job that this attempt has ended as done. Binds: the_id, the_attempt, the_worker_id."""
    return (
        finished_jobs.c.id == param("the_id", sa.BigInteger),
        finished_jobs.c.attempt == param("the_attempt", sa.Integer),
        finished_jobs.c.worker_id == param("the_worker_id", sa.BigInteger),
        finished_jobs.c.state == sa.literal_column("'done'"),
    )


@cache
def set_outcome() -> sa.Executable:
    """The text of a job that completed in its own transaction, and its result (JSON text).

    Binds: the_id, the_attempt, the_worker_id, outcome, result.
    """
    done = sa.update(finished_jobs).where(*_done_by_us())
    written = done.values(outcome=param("outcome", sa.Text), result=json_param("result"))
    return written.returning(finished_jobs.c.id)


@cache
def recorded() -> sa.Executable:
    """Of jobs whose end may have been written, those whose it was. Binds: worker_id, ids (ascending), attempts."""
    return sa.select(finished_jobs.c.id).where(*ended_here())


@cache
def cancelled() -> sa.Executable:
    """Of jobs that were lost, those cancelled in this attempt. Binds: worker_id, ids (ascending), attempts."""
    by_hand = finished_jobs.c.state == sa.literal_column("'cancelled'", sa.Text)
    return sa.select(finished_jobs.c.id).where(*ended_here(), by_hand)


def ended_here(worker: str = "worker_id") -> tuple[sa.ColumnElement[bool], ...]:
    """The fence for many jobs that have ended. Binds: worker_id (or as `worker` says), ids (ascending), attempts."""
    return (
        finished_jobs.c.id == sa.any_(param("ids", BIGINTS)),
        finished_jobs.c.attempt == element("attempts", sa.Integer, place(finished_jobs.c.id)),
        finished_jobs.c.worker_id == param(worker, sa.BigInteger),
    )


@cache
def was_put_back() -> sa.Executable:
    """One job, if this attempt of it ended by going back, whatever came after. Binds: the_id, the_attempt, probe.

    `probe` is JSON text that the history of errors contains if the failure was recorded; `[]` for a snooze.
    """
    open_, ended = (_that_went_on(table) for table in (jobs, finished_jobs))
    later = finished_jobs.c.attempt > param("the_attempt", sa.Integer)
    gone_on = sa.or_(jobs.c.worker_id.is_(None), jobs.c.attempt > param("the_attempt", sa.Integer))
    return sa.union_all(open_.where(gone_on), ended.where(later))


def _that_went_on(table: sa.Table) -> sa.Select[tuple[int]]:
    history = table.c.errors.contains(json_param("probe"))
    return sa.select(table.c.id).where(table.c.id == param("the_id", sa.BigInteger), history)


@cache
def lock_held() -> sa.Executable:
    """One claimed job, if it is still ours. Waits for a transaction in flight that is ending it."""
    return sa.select(jobs.c.id).where(*still_mine()).with_for_update()


@cache
def ended_by_us() -> sa.Executable:
    """One job, if this attempt of ours has ended it as done. Binds: the_id, the_attempt, the_worker_id."""
    return sa.select(finished_jobs.c.id).where(*_done_by_us())


@cache
def announce() -> sa.Executable:
    """One notification a lane. Binds: channel, and of equal length: queues, priorities, run_ats."""

    columns: dict[str, Any] = {"queue": sa.Text, "priority": sa.SmallInteger, "run_at": TIMESTAMP}
    lane = (
        sa.func.unnest(param("queues", TEXTS), param("priorities", SMALLINTS), param("run_ats", TIMES))
        .table_valued(*[sa.column(name, type_) for name, type_ in columns.items()])
        .render_derived(name="lane")
    )
    text = payload(lane.c.queue, lane.c.priority, lane.c.run_at)
    return sa.select(sa.cast(sa.func.pg_notify(param("channel", sa.Text), text), sa.Text))
