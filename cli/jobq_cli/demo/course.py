"""The course of the demo: the shop opens, work piles up, a worker is killed, the others end it all."""

from __future__ import annotations

import time

import sqlalchemy as sa
from sqlalchemy.orm import Session

from jobq import admin
from jobq.model import ENDED, State
from jobq_cli.demo import statements, story
from jobq_cli.demo.fleet import Fleet
from jobq_cli.demo.pace import Pace
from jobq_cli.demo.screen import RECENT, Screen, View
from jobq_cli.demo.tables import Killed
from jobq_cli.failures import Failed

FIRST, SPARE = ("anna", "ben"), ("carla", "dora", "emil")  # the spare ones take the place of one that was killed
TICK_SECONDS = 0.2
MOST_SECONDS = 150.0  # then something is wrong
JUST_SECONDS = 0.7  # a report takes at least 1.5 s: one that began just now is held for a while yet
SERVER_SECONDS = 1.5  # until the server has noticed that a client is gone; less than the lease


class Course:
    """Each tick looks, shows, and does what is due."""

    def __init__(self, engine: sa.Engine, fleet: Fleet, screen: Screen, *, jobs: int, pace: Pace) -> None:
        self._engine = engine
        self._fleet = fleet
        self._screen = screen
        self._jobs = jobs
        self._pace = pace
        self._spare = list(SPARE)
        self._has_killed = False
        self.told: list[str] = []
        self._began = self._ticked = time.monotonic()

    def run(self) -> View:
        """From the first worker's start to the last job's end; the last view. Raises: Failed."""
        for name in FIRST:
            self._start(name)
        for line in story.tell(self._engine, self._jobs, self._pace.seed):
            if line:
                self._tell(line)
            if time.monotonic() - self._ticked > TICK_SECONDS:
                self._tick()
        while not _is_over(view := self._tick()):
            time.sleep(TICK_SECONDS)
        self._screen.show(view)
        return view

    def _start(self, name: str) -> None:
        self._fleet.start(name)
        self._tell(f"worker {name} starts")

    def _tell(self, line: str) -> None:
        self.told.append(line)
        self._screen.tell(line)

    def _tick(self) -> View:
        self._ticked = time.monotonic()
        self._fleet.check()
        with self._engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
            view = self._look(connection)  # one snapshot: a job that moves between its reads is not seen twice
            victim = None if self._has_killed else self._victim(connection, view)
        self._screen.show(view)
        if victim is not None:
            self._kill(victim)
        if view.seconds > MOST_SECONDS:
            raise Failed(f"the demo is not over after {MOST_SECONDS:.0f} s: {view.ended} of {view.total} jobs ended")
        return view

    def _look(self, connection: sa.Connection) -> View:
        stats = admin.stats(connection)
        return View(
            stats=stats,
            ended=sum(stats.states[state] for state in ENDED),
            total=max(self._jobs, sum(stats.states.values())),
            workers=admin.workers(connection),
            recent=connection.execute(statements.recent(), {"most": RECENT}).all(),
            killed=frozenset(member.name for member in self._fleet.members.values() if member.killed),
            seconds=time.monotonic() - self._began,
        )

    def _victim(self, connection: sa.Connection, view: View) -> str | None:
        """A worker that is in the middle of something long; later any that holds several jobs."""
        if view.ended < self._jobs / 4:
            return None
        just = {"just": JUST_SECONDS * self._pace.factor}
        for row in connection.execute(statements.holders(), just):
            is_late = view.ended >= self._jobs / 2 and row.held > 1
            if (row.fresh or is_late) and row.name in self._fleet.running():
                return str(row.name)
        return None

    def _kill(self, name: str) -> None:
        """Only what is still held once the server has let go of the dead worker is orphaned for sure."""
        pid = self._fleet.kill(name)
        held = self._orphans(name)
        self._has_killed = bool(held)
        with Session(self._engine) as session:
            session.add_all([Killed(worker=name, pid=pid, job_ids=held)] if held else [])
            session.commit()
        self._tell(f"worker {name} (pid {pid}) killed with SIGKILL; it held {len(held)} jobs: {_listed(held)}")
        if self._spare:
            self._start(self._spare.pop(0))

    def _orphans(self, name: str) -> list[int]:
        until = time.monotonic() + SERVER_SECONDS
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            while connection.scalar(statements.connections_of(), {"worker": name}) and time.monotonic() < until:
                time.sleep(0.01)
            return list(connection.scalars(statements.held_by(), {"worker": name}))


def _is_over(view: View) -> bool:
    return view.stats.states[State.PENDING] == view.stats.states[State.RUNNING] == 0


def _listed(ids: list[int]) -> str:
    return ", ".join(map(str, ids)) or "none"
