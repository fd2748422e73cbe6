"""Enqueues the periodic jobs of the schedules that this worker's code holds."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from time import monotonic

import anyio
import anyio.lowlevel
import sqlalchemy.exc as sa_exc
from anyio.abc import TaskStatus

from jobq.database import Database
from jobq.faults import can_wait_out, is_connection_failure, spoils_connection, sqlstate
from jobq.periodic import PeriodicJob
from jobq.schedule import Fate, Passed, Watch, next_step
from jobq.store import scheduling as store
from jobq.store.scheduling import Due, Standing
from jobq.worker.failing import Failing, guarded
from jobq.worker.link import Link
from jobq.worker.loops import wait_for

logger = logging.getLogger("jobq.worker")
LONGEST_SLEEP = timedelta(minutes=1)  # a clock may have been set meanwhile, or a row deleted
NOT_TAKEN_SECONDS = 0.1  # another worker has settled this tick, or another transaction holds the row
OPEN_COPY_SECONDS = (0.05, 1.0)  # with catch_up="all": how soon to look whether the copy before has ended, then later


class Scheduler:
    """Settles the ticks that have passed by the database's clock, and sleeps until the next one.

    Run by every worker that holds schedules, whoever leads: the statement that enqueues a tick's job also moves the
    schedule on, and does nothing where somebody else has done so since it was looked at.
    """

    def __init__(
        self, database: Database, link: Link, periodic: Mapping[str, PeriodicJob], *, stop: anyio.Event
    ) -> None:
        self._database = database
        self._link = link
        self._periodic = periodic
        self._stop = stop
        self._published: frozenset[str] = frozenset()
        self._watches: dict[str, Watch] = {}
        self._patience: dict[str, float] = {}
        self._failing, self._raising = Failing(link), Failing(link)  # in the database; in their predicates

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        if not self._periodic:
            return
        while not self._stop.is_set():
            try:
                pause = await self.run_once()
            except Exception as error:
                if not can_wait_out(error):
                    raise
                pause = self._link.failed("scheduler", error)
            else:
                self._link.worked("scheduler")
            await wait_for(self._stop, pause)

    async def run_once(self) -> float:
        """One look, and what is due; how many seconds to sleep then."""
        await self._publish()
        look = await self._database.run(store.look, list(self._periodic))
        since = monotonic()
        self._published &= look.standing.keys()  # a row that was deleted by hand is written again
        due: list[Due] = []
        wakes = [look.now + LONGEST_SLEEP if self._published == self._periodic.keys() else look.now]
        for name, standing in look.standing.items():
            found = await self._consider(self._periodic[name], standing, look.now)
            due += [found] if isinstance(found, Due) else []
            wakes.append(self._wake_of(name) if isinstance(found, Due) else found)
        soon = self._soon(due, await self._fire(due))
        return min((min(wakes) - look.now).total_seconds() - (monotonic() - since), soon)

    async def _publish(self) -> None:
        new = [each for name, each in self._periodic.items() if name not in self._published]
        if not new:
            return
        for changed in await self._database.run(store.publish, new):
            now = self._periodic[changed.name]
            level = logging.INFO if changed.kind == now.job.kind else logging.WARNING
            said = f"schedule {changed.name} was {changed.kind} by {changed.expression}, from now on it is"
            logger.log(level, "%s %s by %s", said, now.job.kind, now.schedule.expression)
        self._published = frozenset(self._periodic)

    async def _consider(self, periodic: PeriodicJob, standing: Standing, now: datetime) -> Due | datetime:
        """What is due of a schedule, or when to look again."""
        name = periodic.name
        if (seconds := self._failing.seconds_left(name)) > 0:
            return now + timedelta(seconds=seconds)
        passed = await self._passed(periodic, standing.last_tick, now)
        step = next_step(passed, catch_up=periodic.schedule.catch_up, now=now, is_open=standing.is_open)
        if step is None and passed.count:
            return now + timedelta(seconds=self._wait_for_copy(name))
        self._patience.pop(name, None)
        return self._wake_of(name) if step is None else Due(periodic, standing.last_tick, step)

    async def _passed(self, periodic: PeriodicJob, settled: datetime, now: datetime) -> Passed:
        name = periodic.name
        if name not in self._watches:
            self._watches[name] = Watch(guarded(periodic.schedule, name, self._raising), settled)
        while not self._watches[name].look(settled, now):
            await anyio.lowlevel.checkpoint()
        return self._watches[name].passed

    def _wait_for_copy(self, name: str) -> float:
        first, last = OPEN_COPY_SECONDS
        self._patience[name] = min(last, 2 * self._patience.get(name, first / 2))
        return self._patience[name]

    def _wake_of(self, name: str) -> datetime:
        """The next tick after what has been looked at, or the end of the longest sleep."""
        watch = self._watches[name]
        return watch.next_tick(LONGEST_SLEEP) or watch.looked + LONGEST_SLEEP

    async def _fire(self, due: Sequence[Due]) -> dict[str, Fate]:
        """All in one statement; where that fails, one by one, so that none can stop the others."""
        if not due:
            return {}
        try:
            fates = await self._database.run(store.fire, due)
        except sa_exc.DBAPIError as error:
            if _concerns_all(error):
                raise
            fates = await self._fire_each(due, error)
        self._failing.worked(fates)
        return fates

    async def _fire_each(self, due: Sequence[Due], error: sa_exc.DBAPIError) -> dict[str, Fate]:
        if len(due) == 1:
            self._failing.note(due[0].periodic.name, error)
            return {}
        fates: dict[str, Fate] = {}
        for each in due:
            fates |= await self._fire([each])
        return fates

    def _soon(self, due: Sequence[Due], fates: Mapping[str, Fate]) -> float:
        """How long to wait at most, for the sake of what was due; says what has been missed."""
        waits = [LONGEST_SLEEP.total_seconds()]
        for each in due:
            name, step = each.periodic.name, each.step
            if name not in fates:
                waits.append(max(NOT_TAKEN_SECONDS, self._failing.seconds_left(name)))
                continue
            if step.missed:
                logger.info("schedule %s: %d ticks missed up to %s", name, step.missed, step.tick)
            if self._watches[name].passed.count > step.missed + step.fires:
                waits.append(0.0)
        return min(waits)


def _concerns_all(error: sa_exc.DBAPIError) -> bool:
    """Trouble of the connection or of the whole server, which another statement would meet too."""
    return is_connection_failure(error) or spoils_connection(error) or (sqlstate(error) or "").startswith("53")
