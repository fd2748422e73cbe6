"""The statements that change a job that waits, for an enqueue that found its unique key held.

Their binds are not named as columns but where they set that column: SQLAlchemy would set it from them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from jobq.statements.binds import BIGINTS, ONE, as_interval, param
from jobq.statements.enqueue import NOTHING, due_at
from jobq.statements.enqueue_rows import told_by_lane, unnested
from jobq.tables import TIMESTAMP, jobs

TIME_FIELDS: dict[str, Any] = {"ids": sa.BigInteger, "run_at": TIMESTAMP, "delay": sa.Double}
REPLACE_FIELDS: dict[str, Any] = TIME_FIELDS | {
    "args": sa.Text,
    "queue": sa.Text,
    "priority": sa.SmallInteger,
    "max_attempts": sa.Integer,
    "meta": sa.Text,
}
RESCHEDULE_FIELDS: dict[str, Any] = TIME_FIELDS | {"max_wait": sa.Double}


@cache
def replace() -> sa.Executable:
    """Waiting jobs become what an enqueue would have inserted; id, created_at, failures and errors stay.

    Binds: of equal length an array for each of REPLACE_FIELDS, ids distinct; the_kind, the_callsite, channel. The time
    stays where `run_at` and `delay` are NULL, but in another lane it is not before now, where no cursor has passed. At
    least one attempt is left. Rows: see `_answers`.
    """
    wanted = unnested(REPLACE_FIELDS)
    gives_time = sa.or_(wanted.c.run_at.is_not(None), wanted.c.delay.is_not(None))
    moves = sa.or_(jobs.c.queue != wanted.c.queue, jobs.c.priority != wanted.c.priority)
    run_at = sa.case(
        (gives_time, _asked(wanted)), (moves, sa.func.greatest(jobs.c.run_at, sa.func.now())), else_=jobs.c.run_at
    )
    more = sa.func.greatest(wanted.c.max_attempts, jobs.c.failures + ONE)
    return _answers(wanted, {
        "args": sa.cast(wanted.c.args, JSONB),
        "queue": wanted.c.queue,
        "priority": wanted.c.priority,
        "run_at": run_at,
        "max_attempts": sa.case((wanted.c.max_attempts.is_not(None), more)),
        "meta": sa.cast(wanted.c.meta, JSONB),
        "callsite": param("the_callsite", sa.Text),
    })  # fmt: skip


@cache
def reschedule() -> sa.Executable:
    """Waiting jobs get another time, not later than `max_wait` seconds after created_at (NULL: no limit).

    A job for which that has passed stays where it is, and is due; one that was tried already is not moved to before
    its retry. Binds: of equal length an array for each of RESCHEDULE_FIELDS, ids distinct; the_kind, channel.
    Rows: see `_answers`.
    """
    wanted = unnested(RESCHEDULE_FIELDS)
    asked, now = _asked(wanted), sa.func.now()
    latest = jobs.c.created_at + as_interval(wanted.c.max_wait)
    late = sa.func.least(jobs.c.run_at, now)
    moved = sa.case((sa.func.coalesce(asked <= latest, sa.true()), asked), (latest > now, latest), else_=late)
    run_at = sa.case((jobs.c.attempt > 0, sa.func.greatest(jobs.c.run_at, moved)), else_=moved)
    return _answers(wanted, {"run_at": run_at})


def _asked(wanted: sa.TableValuedAlias) -> sa.ColumnElement[Any]:
    return due_at(wanted.c.run_at, as_interval(wanted.c.delay))


def _answers(wanted: sa.TableValuedAlias, values: dict[str, Any]) -> sa.Executable:
    """Change those of the ids that wait and are of the kind, and say what became of each.

    Rows: id, is_changed, kind; False for one that runs or is of another kind; no row for one that was claimed, given
    back or ended during the statement. A NULL id only tells a lane.

    Locked in the order of the ids, so that two callers cannot wait for each other in a circle. The notification counts
    although the job may not have moved: a claim may have passed the locked row, and its cursor with it.
    """
    ids, kind = param("ids", BIGINTS), param("the_kind", sa.Text)
    waits = sa.and_(jobs.c.worker_id.is_(None), jobs.c.kind == kind)
    among = jobs.c.id == sa.any_(ids)
    lock = sa.select(jobs.c.id).where(among, waits).order_by(jobs.c.id).with_for_update(key_share=True)
    locked = sa.cast(sa.func.array(lock.scalar_subquery()), ARRAY(sa.BigInteger))
    update = sa.update(jobs).where(jobs.c.id == sa.any_(locked), jobs.c.id == wanted.c.ids).values(values)
    changed = update.returning(jobs.c.id, jobs.c.queue, jobs.c.priority, jobs.c.run_at).cte("changed")
    done = sa.select(changed.c.id, sa.true().label("is_changed"), kind.label("kind"), NOTHING.label("told"))
    other = sa.select(jobs.c.id, sa.false(), jobs.c.kind, NOTHING).where(among, ~waits)
    return sa.union_all(done, other, told_by_lane(changed, sa.BigInteger, sa.Boolean, sa.Text))
