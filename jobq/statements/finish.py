"""Ending claimed jobs: they move to finished_jobs."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.sql.dml import ReturningInsert

from jobq.statements.binds import BIGINTS, INTEGERS, PLACES, as_interval, element, json_param, listed, param, seconds
from jobq.statements.claim import place_of
from jobq.statements.errors import with_error
from jobq.statements.fence import done_by_us, held, place
from jobq.statements.slots import freeing
from jobq.tables import finished_jobs, jobs

SHARED = tuple(column.name for column in jobs.c)


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
def set_outcome() -> sa.Executable:
    """The text of a job that completed in its own transaction, and its result (JSON text).

    Binds: the_id, the_attempt, the_worker_id, outcome, result.
    """
    done = sa.update(finished_jobs).where(*done_by_us())
    written = done.values(outcome=param("outcome", sa.Text), result=json_param("result"))
    return written.returning(finished_jobs.c.id)
