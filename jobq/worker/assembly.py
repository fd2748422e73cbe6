"""Makes the services of one run and ties them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import anyio
import sqlalchemy as sa

from jobq.database import STATEMENT_LIMIT, Database, connect_arguments, use_settings
from jobq.executors import Executor
from jobq.registry import App
from jobq.worker.claimer import Claimer
from jobq.worker.completer import Completer
from jobq.worker.guard import Guard
from jobq.worker.heartbeat import Events, Heartbeat
from jobq.worker.held import HeldJobs, Stop
from jobq.worker.lanes import Lanes
from jobq.worker.lease import Lease
from jobq.worker.link import Link
from jobq.worker.listener import Listener, listen_arguments
from jobq.worker.membership import Membership
from jobq.worker.options import WorkerOptions
from jobq.worker.rescuer import Rescuer
from jobq.worker.runner import Runner
from jobq.worker.settler import Settler
from jobq.worker.source import Source
from jobq.worker.stats import Counters
from jobq.worker.surveyor import Surveyor
from jobq.worker.transactions import HandlerEngines, Transactions

OWN_POOL = 4  # claims, completions, rescue, survey; heartbeat and listener have one connection each besides


@dataclass(frozen=True, slots=True)
class Setting:
    """What a worker was made with."""

    app: App
    source: Source
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
        self.lease = Lease(options.lease)
        self.link = Link(lambda: setting.app.error_callbacks)
        self.database = Database(
            source.url, source.connect_args, name=f"jobq {name}", size=OWN_POOL, options=source.options
        )
        self.engines = HandlerEngines(source, name=f"jobq {name} handlers", size=options.concurrency)
        self.completer = Completer(self.database, self.link, self.counters, self.held, name=name)
        self.membership = self._membership(setting)
        self.runner = self._runner(setting)
        lanes = Lanes()
        self.surveyor = self._surveyor(setting, lanes)
        self.claimer = self._claimer(setting, lanes)
        self.runner.on_room = self.claimer.wake
        self.rescuer = self._rescuer(setting)
        self.listener = self._listener(setting)
        self.heartbeat = self._heartbeat(setting)
        self.guard = Guard(self.lease, lost=self._lease_lost, stop=self.stop.close)

    def _membership(self, setting: Setting) -> Membership:
        return Membership(
            self.database,
            self.lease,
            self.held,
            name=setting.name,
            queues=setting.options.queues,
            kinds=sorted(setting.app.handlers),
            concurrency=setting.options.concurrency,
            channel=setting.source.channel,
        )

    def _surveyor(self, setting: Setting, lanes: Lanes) -> Surveyor:
        return Surveyor(
            self.database,
            self.link,
            lanes,
            queues=setting.options.queues,
            declared=declared_weights(setting.app),
            stop=self.stop.close,
        )

    def _claimer(self, setting: Setting, lanes: Lanes) -> Claimer:
        return Claimer(
            self.database,
            self.link,
            self.counters,
            self.lease,
            lanes,
            self.surveyor,
            self.membership,
            self.runner,
            self.completer,
            kinds=sorted(setting.app.handlers),
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
            stop=self.stop.close,
        )

    def _runner(self, setting: Setting) -> Runner:
        callbacks = self.link.callbacks
        settler = Settler(self.completer, self.counters, self.held, name=setting.name, callbacks=callbacks)
        return Runner(
            handlers=setting.app.handlers,
            executors=setting.executors,
            around=setting.app.around_factories,
            held=self.held,
            completer=self.completer,
            settler=settler,
            concurrency=setting.options.concurrency,
            open_transaction=Transactions(self.engines, self.database).open,
        )

    def _listener(self, setting: Setting) -> Listener:
        arguments = connect_arguments(setting.source.url, setting.source.connect_args, name=f"jobq {setting.name}")
        return Listener(
            listen_arguments(setting.source.url, arguments),
            self.link,
            channel=setting.source.channel,
            tell=self.claimer.tell,
            stop=self.stop.close,
        )

    def _heartbeat(self, setting: Setting) -> Heartbeat:
        source = setting.source
        engine = sa.create_engine(
            source.url,
            connect_args=connect_arguments(source.url, source.connect_args, name=f"jobq {setting.name} heartbeat"),
            isolation_level="AUTOCOMMIT",
            poolclass=sa.NullPool,
            hide_parameters=True,
            execution_options=source.options,
        )
        limit = min(max(setting.options.lease / 3, timedelta(seconds=0.5)), STATEMENT_LIMIT)
        use_settings(engine, statement_timeout=f"{limit.total_seconds() * 1000:.0f}ms")
        events = Events(lease_lost=self._lease_lost, jobs_lost=self.runner.stop_lost)
        stall = setting.options.stall_after
        return Heartbeat(engine, self.lease, self.held, self.link, events, stall=stall)

    def _lease_lost(self, worker_id: int, reason: str) -> None:
        """In the loop's thread: stop what runs, and have the claimer join anew."""
        if self.lease.worker_id != worker_id:
            return
        self.counters.leases_lost += 1
        self.membership.lose(worker_id, reason)
        self.runner.stop_all(Stop.LOST)
        self.claimer.tell(None)


def declared_weights(app: App) -> dict[str, int]:
    """The queues that the code names, with their weights: 1 where it says none."""
    weights = {handler.settings.queue: 1 for handler in app.handlers.values()}
    return weights | {name: settings.weight for name, settings in app.queues.items()}
