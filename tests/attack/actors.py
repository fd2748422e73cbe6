"""Who writes to a job: functions of jobq's store and of `jobq.admin`, each as the product calls it.

Each answers whether it has ended the claim that it believes in (`acts` that are not about a claim: False).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sa

from jobq import admin
from jobq.model import State
from jobq.statements.claim import place_of
from jobq.store.claiming import LaneAsk, claim
from jobq.store.ending import Ending, Fence, finish, finish_done
from jobq.store.leasing import beat, leave, reconcile
from jobq.store.putting_back import give_back, put_back
from jobq.store.rescuing import rescue
from jobq.tables import finished_jobs, jobs, workers

HOLDER, OTHER = 11, 22
KIND, ERROR = "k", '{"attempt": 1, "worker": "w", "error": "ValueError", "message": "no", "traceback": null}'
NOW, LONG, MOMENT = sa.func.now(), timedelta(days=3650), timedelta(milliseconds=1)
START = datetime.min.replace(tzinfo=UTC)
LANE = LaneAsk("default", 1, START, 0, 10)
NOWHERE = "(0,0)"

Act = Callable[[sa.Connection, int], bool]


def _fence(id_: int) -> Fence:
    return Fence(id_, 1, HOLDER)


def _claim_as(worker_id: int) -> Act:
    def act(connection: sa.Connection, id_: int) -> bool:
        claim(connection, [LANE], worker_id=worker_id, kinds=[KIND], most=10)
        return False

    return act


def _beat(connection: sa.Connection, id_: int) -> bool:
    beat(connection, HOLDER)
    return False


def _rescue(connection: sa.Connection, id_: int) -> bool:
    return bool(rescue(connection, connected_for=LONG, look_everywhere=False, channel=None).jobs)


def _complete(connection: sa.Connection, id_: int) -> bool:
    """At the place where it is, as long as nobody has written it since."""
    place = connection.scalar(sa.select(sa.cast(place_of("jobs"), sa.Text)).select_from(jobs).where(jobs.c.id == id_))
    return _complete_at(connection, id_, place or NOWHERE)


def _complete_moved(connection: sa.Connection, id_: int) -> bool:
    """Its row was written since the claim."""
    return _complete_at(connection, id_, NOWHERE)


def _complete_at(connection: sa.Connection, id_: int, place: str) -> bool:
    ended = finish_done(connection, [id_], [1], [place], [None], worker_id=HOLDER, keep=timedelta(days=1))
    return ended is None or id_ in ended


def _put_back(connection: sa.Connection, id_: int) -> bool:
    return put_back(connection, Ending(_fence(id_), State.PENDING, error=ERROR, delay=timedelta(0)))


def _fail_for_good(connection: sa.Connection, id_: int) -> bool:
    return bool(finish(connection, [Ending(_fence(id_), State.DEAD, "err: no", ERROR, keep=timedelta(days=1))]))


def _release(connection: sa.Connection, id_: int) -> bool:
    return bool(give_back(connection, [_fence(id_)], channel=None))


def _reconcile(connection: sa.Connection, id_: int) -> bool:
    reconcile(connection, worker_id=HOLDER, held=[_fence(id_)], channel=None)
    return False


def _leave(connection: sa.Connection, id_: int) -> bool:
    """As a worker leaves that may have a claim of its own in flight: with all that carries its id."""
    leave(connection, worker_id=HOLDER, held=None, channel=None)
    return False


def _cancel(connection: sa.Connection, id_: int) -> bool:
    admin.cancel_ids(connection, [id_], running=True)
    return False


def _retry_by_hand(connection: sa.Connection, id_: int) -> bool:
    admin.retry_ids(connection, [id_])
    return False


ACTS: dict[str, Act] = {
    "claim": _claim_as(OTHER),
    "late claim": _claim_as(HOLDER),
    "heartbeat": _beat,
    "rescue": _rescue,
    "complete": _complete,
    "retry": _put_back,
    "release": _release,
    "cancel": _cancel,
    "retry by hand": _retry_by_hand,
}
MORE_ACTS: dict[str, Act] = {"complete, moved": _complete_moved, "reconcile": _reconcile, "leave": _leave}
STEP_OVER_LOCKS = {"claim", "late claim", "rescue"}  # what they skip they find at their next look


class Scene(NamedTuple):
    """What there is at first: where the job is, its values, and whether the holder's lease is over."""

    state: str
    is_lost: bool
    max_attempts: int = 5

    def acts(self, acts: dict[str, Act]) -> dict[str, Act]:
        """A failure in the last attempt is not put back: the worker's verdict is dead."""
        return {**acts, "retry": _fail_for_good} if self.max_attempts == 1 else acts


SCENES = {
    "due": Scene("pending", is_lost=False),
    "due, its former holder lost": Scene("pending", is_lost=True),
    "running": Scene("running", is_lost=False),
    "running, its holder lost": Scene("running", is_lost=True),
    "running for the last time, its holder lost": Scene("running", is_lost=True, max_attempts=1),
    "done": Scene("done", is_lost=False),
}


def set_scene(connection: sa.Connection, scene: Scene) -> int:
    """Nothing but this job, once claimed by the holder, and two workers; its id."""
    connection.exec_driver_sql("SET LOCAL session_replication_role = replica")  # the journal is about what follows
    for table in (jobs, finished_jobs, workers):
        connection.execute(sa.delete(table))
    lease = {"lease": MOMENT, "lease_until": NOW - MOMENT} if scene.is_lost else {}
    for worker_id, values in ((HOLDER, lease), (OTHER, {})):
        row = {"id": worker_id, "name": "w", "lease": LONG, "lease_until": NOW + LONG, **values}
        connection.execute(sa.insert(workers).values(row))
    row = {"queue": "default", "kind": KIND, "attempt": 1, "run_at": NOW - MOMENT, "max_attempts": scene.max_attempts}
    if scene.state != "pending":
        row |= {"worker_id": HOLDER, "attempted_at": NOW}
    id_ = int(connection.execute(sa.insert(jobs).values(row).returning(jobs.c.id)).scalar_one())
    connection.exec_driver_sql("SET LOCAL session_replication_role = origin")
    if scene.state == "done":
        assert _complete(connection, id_)
    return id_
