"""A worker without a loop: what it does happens when a test says so, by the statements and decisions of a real one."""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa

import jobq
from jobq.store import leasing
from jobq.store.leasing import Published, Registration
from jobq.tables import workers
from jobq.testing.solo import Solo, _write
from jobq.verdict import Ended
from jobq.worker.held import Held

LEASE = timedelta(milliseconds=1)  # rescue judges nobody whose lease is longer than the server has been up
HOUR = timedelta(hours=1)
FOR_EVER = timedelta(days=36_500)


class Hand(Solo):
    """Claims in one transaction and ends in another. Its lease lasts until `dies`: it beats for ever."""

    @property
    def id(self) -> int:
        return self._worker_id

    def register(self, connection: sa.Connection) -> None:
        leasing.publish(connection, [Published.of(handler) for handler in self._app.handlers.values()], [])
        leasing.register(connection, Registration(self.id, "hand", "here", 1, "0", None, self._kinds, 1, LEASE))
        self.beats(connection)

    def beats(self, connection: sa.Connection) -> bool:
        alive = leasing.beat(connection, self.id)
        self._lasts(connection, FOR_EVER)
        return alive

    def dies(self, connection: sa.Connection) -> None:
        """No beat follows, and the lease has run out."""
        self._lasts(connection, -HOUR)

    def takes(self, connection: sa.Connection) -> Held | None:
        self._connection = connection
        return self.take(scheduled=False)

    def ends(self, connection: sa.Connection, held: Held, ended: Ended) -> None:
        """Write what becomes of an attempt, whoever has the job by now."""
        self._connection = connection
        self._settler.decide(held, ended)
        assert self._decided is not None
        _write(connection, held, *self._decided)

    def leaves(self, connection: sa.Connection, held: list[Held]) -> None:
        leasing.leave(connection, worker_id=self.id, held=[each.fence for each in held], channel=None)

    def _lasts(self, connection: sa.Connection, span: timedelta) -> None:
        until = sa.update(workers).where(workers.c.id == self.id).values(lease_until=sa.func.now() + span)
        connection.execute(until)


def ended_as(how: str, hours: int) -> Ended:
    """What a handler did: done, fail, permanent, snooze, pause."""
    span = timedelta(hours=hours)
    errors: dict[str, BaseException] = {
        "fail": RuntimeError("no"),
        "permanent": jobq.Permanent("never"),
        "snooze": jobq.Snooze(span),
        "pause": jobq.PauseQueue(span),
    }
    return Ended("fine") if how == "done" else Ended(error=errors[how])


def pass_hours(connection: sa.Connection, hours: int) -> None:
    """The database's clock cannot be turned, so all that it is compared with goes into the past."""
    columns = {
        "jobs": ("run_at", "created_at", "attempted_at"),
        "finished_jobs": ("run_at", "created_at", "attempted_at", "finished_at", "expires_at"),
        "queues": ("paused_at", "paused_until"),
        "slots": ("ready_at",),
    }
    span = sa.cast(sa.literal(timedelta(hours=hours)), sa.Interval)
    for table, names in columns.items():
        moved = sa.table(table, *map(sa.column, names), schema="jobq")
        connection.execute(sa.update(moved).values({name: moved.c[name] - span for name in names}))
