"""Makes the services of one run and ties them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio

from jobq.database import Database
from jobq.executors import Executor
from jobq.model import Position
from jobq.registry import App
from jobq.source import Source
from jobq.worker.awaited import Awaited
from jobq.worker.claimer import Claimer
from jobq.worker.claims import Claims
from jobq.worker.completer import Completer
from jobq.worker.groups import Groups, Room, groups_of, places_of
from jobq.worker.guard import Guard
from jobq.worker.handler_engines import HandlerEngines
from jobq.worker.heartbeat import Events, Heartbeat, database_for
from jobq.worker.held import HeldJobs, Stop
from jobq.worker.intake import Intake
from jobq.worker.keeper import SlotKeeper
from jobq.worker.leader import Election, Maintainer
from jobq.worker.lease import Lease
from jobq.worker.left_behind import LeftBehind
from jobq.worker.limited import LimitedQueues
from jobq.worker.link import Link
from jobq.worker.listener import Listener
from jobq.worker.looplag import LoopWatch
from jobq.worker.losses import Losses
from jobq.worker.membership import Membership
from jobq.worker.options import WorkerOptions
from jobq.worker.reporter import Reporter
from jobq.worker.rescuer import Rescuer
from jobq.worker.runner import Runner
from jobq.worker.scheduler import Scheduler
from jobq.worker.session_watch import SessionWatch
from jobq.worker.settler import Settler
from jobq.worker.stats import Counters
from jobq.worker.surveyor import Surveyor
from jobq.worker.threads import ThreadRoom
from jobq.worker.transactions import Transactions
from jobq.worker.wear import Wear

OWN_POOL = 4  # claims, completions, rescue, survey, the leader's work; heartbeat and listener have one each besides


@dataclass(frozen=True, slots=True)
class Setting:
    """What a worker was made with."""

    app: App
    source: Source
    listen_source: Source
    options: WorkerOptions
    name: str
    executors: Mapping[str, Executor]


@dataclass(slots=True)
class Signals:
    """claim: no more claims. hurry: no more grace. close: the services in the background end.

    told_at: when the word to stop came, by the event loop's clock; the grace time counts from it.
    """

    told_at: float | None = None
    claim: anyio.Event = field(default_factory=anyio.Event)
    hurry: anyio.Event = field(default_factory=anyio.Event)
    close: anyio.Event = field(default_factory=anyio.Event)


class Assembly:
    """The services of one run of a worker."""

    def __init__(self, setting: Setting) -> None:
        source, options, name = setting.source, setting.options, setting.name
        self.stop = Signals()
        self.counters = Counters()
        self.held = HeldJobs()
        self.loop_watch = LoopWatch(self.held)
        self.lease = Lease(options.lease)
        self.link = Link(lambda: setting.app.error_callbacks)
        self.database = Database(source, name=f"jobq {name}", size=OWN_POOL)
        self.engines = HandlerEngines(source, name=f"jobq {name} handlers", size=options.concurrency)
        self.completer = Completer(
            self.database, self.link, self.counters, self.held, name=name, channel=source.channel
        )
        self.keeper = self._keeper()
        self.membership = self._membership(setting)
        self.losses = self._losses()
        self.reporter = Reporter(
            self.database, self.link, self.counters, refused=self.losses.look, stop=self.stop.close
        )
        self.awaited = Awaited(self.database, self.link, stop=self.stop.close)
        self.completer.flush_with(self.reporter.flush)
        self.completer.on_recorded(self.awaited.ended)
        places = places_of(setting.executors, setting.app.handlers)
        threads = ThreadRoom(setting.executors, setting.app.handlers)
        rooms: dict[str, Room] = {**dict.fromkeys(threads.needing, threads), **places}
        self.left_behind = LeftBehind(setting.executors.values())
        self.intake = self._intake(setting, rooms)
        self.runner = self._runner(setting, rooms)
        groups = groups_of(sorted(setting.app.handlers), places, threads)
        limited = LimitedQueues()
        self.surveyor = self._surveyor(setting, groups, limited)
        self.claims = self._claims(groups)
        self.claimer = self._claimer(setting, groups, limited)
        self.runner.on_room = self.claimer.wake
        self.wear = Wear(self.left_behind, threads, self.end, most=options.most_left_behind, patience=options.grace)
        threads.on_room = self.claimer.has_room
        for each in places.values():
            each.on_room = self.claimer.has_room
        self.completer.on_freed(self.claimer.freed)
        self.completer.on_paused(self.intake.hand_back)
        self.rescuer = self._rescuer(setting)
        self.election = Election(self.database, self.link, self.lease, name=name, stop=self.stop.close)
        self.maintainer = Maintainer(self.database, self.link, self.election, stop=self.stop.close)
        self.scheduler = Scheduler(self.database, self.link, setting.app.schedules, stop=self.stop.close)
        self.session_watch = SessionWatch(self.database, self.link, self.engines, stop=self.stop.close)
        self.listener = self._listener(setting)
        self.heartbeat = self._heartbeat(setting)
        self.guard = Guard(self.lease, lost=self._lease_lost, stop=self.stop.close)

    def _keeper(self) -> SlotKeeper:
        return SlotKeeper(
            self.database,
            self.link,
            still_runs=lambda: self.left_behind.ids,
            freed=lambda wait: self.claimer.freed(wait),
            stop=self.stop.close,
        )

    def _losses(self) -> Losses:
        return Losses(
            self.database,
            self.link,
            self.lease,
            self.held,
            taken=lambda taken: self.runner.stop_lost(taken),
            claim_in_flight=lambda: self.counters.claims if self.claims.is_unclear else None,
            stop=self.stop.close,
        )

    def _membership(self, setting: Setting) -> Membership:
        return Membership(
            self.database,
            self.lease,
            self.held,
            self.keeper,
            name=setting.name,
            queues=setting.options.queues,
            kinds=sorted(setting.app.handlers),
            schedules=sorted(setting.app.schedules),
            concurrency=setting.options.concurrency,
            channel=setting.source.channel,
        )

    def _surveyor(self, setting: Setting, groups: Groups, limited: LimitedQueues) -> Surveyor:
        return Surveyor(
            self.database,
            self.link,
            groups,
            limited,
            queues=setting.options.queues,
            used=[handler.settings.queue for handler in setting.app.handlers.values()],
            declared=setting.app.queues,
            stop=self.stop.close,
        )

    def _claims(self, groups: Groups) -> Claims:
        return Claims(self.database, self.counters, self.lease, groups, self.membership, self.runner, self.completer)

    def _claimer(self, setting: Setting, groups: Groups, limited: LimitedQueues) -> Claimer:
        return Claimer(
            self.link,
            self.claims,
            groups,
            limited,
            self.surveyor,
            self.runner,
            poll_interval=setting.options.poll_interval,
            stop=self.stop.claim,
        )

    def _rescuer(self, setting: Setting) -> Rescuer:
        return Rescuer(
            self.database,
            self.link,
            self.counters,
            interval=setting.options.rescue_interval,
            channel=setting.source.channel,
            is_leader=lambda: self.election.office is not None,
            stop=self.stop.close,
        )

    def _intake(self, setting: Setting, rooms: Mapping[str, Room]) -> Intake:
        return Intake(
            setting.app.handlers,
            setting.app.queues,
            rooms,
            self.held,
            self.completer,
            self.left_behind,
            slots=setting.options.concurrency,
        )

    def _runner(self, setting: Setting, rooms: Mapping[str, Room]) -> Runner:
        callbacks = self.link.callbacks
        settler = Settler(
            self.completer, self.counters, self.held, self.keeper.keep, name=setting.name, callbacks=callbacks
        )
        transactions = Transactions(self.engines, self.database)
        return Runner(
            intake=self.intake,
            left_behind=self.left_behind,
            rooms=rooms,
            executors=setting.executors,
            around=setting.app.around_factories,
            held=self.held,
            settler=settler,
            concurrency=setting.options.concurrency,
            open_transaction=transactions.open,
            settle=transactions.settle,
            report=self.reporter.note,
            lease=self.lease,
        )

    def _listener(self, setting: Setting) -> Listener:
        return Listener(
            setting.listen_source,
            self.link,
            name=f"jobq {setting.name}",
            channel=setting.source.channel,
            tell=self._told,
            words={"taken": self.losses.tell, "awaited": self.awaited.add},
            stop=self.stop.close,
        )

    def _heartbeat(self, setting: Setting) -> Heartbeat:
        name = f"jobq {setting.name} heartbeat"
        database = database_for(setting.source, setting.options.lease, name=name)
        events = Events(self._lease_lost, self.runner.stop_lost, lambda: len(self.left_behind.ids))
        stall = setting.options.stall_after
        return Heartbeat(database, self.lease, self.held, self.link, events, stall=stall)

    def end(self) -> None:
        """No more claims; what runs has the grace time from the first call on."""
        if self.stop.told_at is None:
            self.stop.told_at = anyio.current_time()
        self.stop.claim.set()
        self.claimer.wake()

    def _told(self, position: Position | None) -> None:
        """Something is due; None: notifications may have been missed, also of jobs that were taken."""
        self.claimer.tell(position)
        if position is None:
            self.losses.look()

    def _lease_lost(self, worker_id: int, reason: str) -> None:
        """In the loop's thread: stop what runs, and have the claimer join anew."""
        if self.lease.worker_id != worker_id:
            return
        self.counters.leases_lost += 1
        self.membership.lose(worker_id, reason)
        self.runner.stop_all(Stop.LOST)
        self.claimer.tell(None)
