"""A worker of one transaction: claims and ends jobs by the worker's own statements, and decides as it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import scoped_session

from jobq import admin
from jobq.bind import Bind, connection_of
from jobq.codec import Codec
from jobq.context import Context
from jobq.errors import ContextError
from jobq.executors import Call
from jobq.faults import sqlstate
from jobq.model import Claimed, Job, State
from jobq.notify import channel_of
from jobq.queue_settings import QueueSettings
from jobq.registry import App
from jobq.reports import merged
from jobq.statements import lease as lease_statements
from jobq.statements import testing as statements
from jobq.store import claiming, leasing, putting_back, reporting
from jobq.store import ending as store
from jobq.store.claiming import LaneAsk
from jobq.store.ending import Ending
from jobq.store.leasing import PublishedQueue, Registration
from jobq.testing.joined import JoinedSessions
from jobq.verdict import Ended, Verdict
from jobq.worker.held import Held, HeldJobs, held_of
from jobq.worker.lease import new_worker_id
from jobq.worker.settler import Settler
from jobq.worker.stats import Counters
from jobq.worker.transactions import JobTransaction

NAME = "jobq.testing"
LEASE = timedelta(minutes=1)
START = datetime.min.replace(tzinfo=UTC)
ABORTED = "25P02"


@dataclass(frozen=True, slots=True)
class Worked:
    """One attempt of a job that has run.

    `job` is as it stands after it, with its state, outcome and errors. `word`: ok, fail, skip, retry, dead, snooze or
    pause. `error`: what the handler raised.
    """

    job: Job
    word: str
    error: BaseException | None = None


class Solo:
    """Everything here is in the transaction of the bind that it joins; the handlers are run by somebody else."""

    _connection: sa.Connection

    def __init__(self, app: App, queues: Sequence[str] | None) -> None:
        app.resolve()
        self._app = app
        self._queues = None if queues is None else list(queues)
        self._kinds = sorted(app.handlers)
        self._worker_id = new_worker_id()
        self._published: set[str] = set()
        self._decided: tuple[Ending, Verdict] | None = None
        self._reports: dict[str, str] = {}
        self._settler = Settler(
            self,
            Counters(),
            HeldJobs(),
            lambda fence, wait: False,
            name=NAME,
            callbacks=lambda: app.error_callbacks,
        )

    def join(self, bind: Bind) -> None:
        """Begin: what the session has not sent yet is sent, and jobs can be claimed."""
        if not isinstance(bind, sa.Connection):
            bind.flush()
        self._connection = connection_of(bind, "jobq.testing")
        about = Registration(self._worker_id, NAME, NAME, 0, NAME, self._queues, self._kinds, 1, LEASE)
        leasing.register(self._connection, about)

    def leave(self, bind: Bind) -> None:
        """End: what the session has read is stale, as after a commit."""
        try:
            self._connection.execute(lease_statements.leave(), {"me": self._worker_id})
        except DBAPIError as error:
            if sqlstate(error) != ABORTED:
                raise
        if not isinstance(bind, sa.Connection):
            session = bind() if isinstance(bind, scoped_session) else bind
            if session.expire_on_commit:
                session.expire_all()

    def take(self, *, scheduled: bool) -> Held | None:
        """The next job: of the highest priority, and of these the one that is due first."""
        while (job := self._claimed()) is None:
            if not scheduled or not self._make_due():
                return None
        queue = replace(self._app.queues.get(job.queue, QueueSettings()), throttle=None)
        return held_of(job, self._app.handlers[job.kind], queue, monotonic())

    def call(self, held: Held, state: Any, *, in_greenlet: bool) -> Call:
        """What is to be run. Raises: ArgsError, for args that do not fit the handler."""
        codec: Codec = held.handler.codec
        arguments = codec.decode(held.job.args)
        transaction = JoinedTransaction(held, self._connection, in_greenlet=in_greenlet)
        self._reports = {}
        held.context = Context(
            held.view, state, lambda: transaction, meta=held.job.meta, report=self._reports.__setitem__
        )
        return Call(held.handler.function, arguments, held.context, self._app.around_factories)

    def settle(self, held: Held, ended: Ended) -> Worked:
        """Decide what becomes of the job, and write it."""
        self._settler.decide(held, ended)
        assert self._decided is not None
        ending, verdict = self._decided
        try:
            self._write_reports(held)
            _write(self._connection, held, ending, verdict)
        except DBAPIError as error:
            if sqlstate(error) == ABORTED and ended.error is not None:
                ended.error.add_note(f"job {held.job.id}: its end is not recorded, the handler aborted the transaction")
                raise ended.error from None
            raise
        job = admin.get(self._connection, held.job.id)
        assert job is not None
        return Worked(job, verdict.word, ended.error)

    def add(self, held: Held, ending: Ending, verdict: Verdict) -> None:
        """The settler's decision."""
        self._decided = ending, verdict

    def done(self, held: Held) -> None:
        """The same, of a job that ended well."""
        self.add(held, Ending(held.fence, State.DONE, held.outcome), Verdict(State.DONE, held.outcome))

    def free_slot(self, held: Held) -> None:
        """Nothing is ever lost to another hand here."""

    def _write_reports(self, held: Held) -> None:
        """What the handler has said, before its end."""
        if self._reports:
            reporting.report(self._connection, {held.fence: merged(self._reports)}, waits=True)
        self._reports = {}

    def _claimed(self) -> Claimed | None:
        lanes = self._connection.execute(statements.due_lanes(), {"kinds": self._kinds}).all()
        lanes = [lane for lane in lanes if self._queues is None or lane.queue in self._queues]
        self._publish({lane.queue for lane in lanes} - self._published)
        limits = {row.name: bool(row.fifo) for row in self._connection.execute(statements.limits())}
        for lane in lanes:
            if jobs := self._claim(lane.queue, lane.priority, limits.get(lane.queue)):
                return jobs[0]
        return None

    def _publish(self, names: set[str]) -> None:
        """The limits that the code gives to these queues; other settings make no difference to one job at a time."""
        declared = {name: each for name, each in self._app.queues.items() if name in names and each.is_limited}
        self._published |= names
        if declared:
            told = [PublishedQueue(name, each.weight, each.fifo, each.concurrency) for name, each in declared.items()]
            leasing.publish(self._connection, (), told)

    def _claim(self, queue: str, priority: int, fifo: bool | None) -> tuple[Claimed, ...]:
        """One job of a lane, if it may be had; `fifo` None: the queue has no limit."""
        common: dict[str, Any] = {"worker_id": self._worker_id, "kinds": self._kinds, "most": 1}
        if fifo is None:
            return claiming.claim(self._connection, [LaneAsk(queue, priority, START, 0, 1)], **common).jobs
        return claiming.claim_slots(self._connection, [queue], in_order=fifo, **common).jobs

    def _make_due(self) -> bool:
        """Make due what is scheduled first: a slot that waits in place of its job, else a job."""
        freed = self._connection.execute(statements.free_waiting_slots(), {"of_queues": self._queues}).all()
        binds = {"kinds": self._kinds, "queues": self._queues}
        return bool(freed) or self._connection.execute(statements.bring_forward(), binds).first() is not None


class JoinedTransaction(JobTransaction):
    """The worker's, on the test's connection. `in_greenlet`: a plain handler runs where the loop does."""

    def __init__(self, held: Held, connection: sa.Connection, *, in_greenlet: bool) -> None:
        super().__init__(held, JoinedSessions(connection), _nothing_to_settle, None)
        self._in_greenlet = in_greenlet

    def _is_async_here(self) -> bool:
        return not self._in_greenlet and super()._is_async_here()


async def _nothing_to_settle(held: Held) -> bool:
    raise ContextError(f"job {held.job.id}: the test's connection is lost")


def _write(connection: sa.Connection, held: Held, ending: Ending, verdict: Verdict) -> None:
    """As the worker's completer does."""
    if held.completed:
        if ending.outcome is not None:
            store.set_outcome(connection, ending.fence, ending.outcome, ending.result)
        if ending.slot_wait is not None:
            store.free_slot(connection, ending.fence, ending.slot_wait)
    elif ending.state is not State.PENDING:
        store.finish(connection, [ending]) if ending.slot_wait is None else store.finish_limited(connection, ending)
    elif verdict.pause is not None:
        putting_back.pause_and_put_back(connection, ending, queue=held.job.queue, channel=channel_of(connection))
    else:
        putting_back.put_back(connection, ending)
