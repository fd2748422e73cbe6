"""Two acts at once on real connections: one stops before a statement, or before its COMMIT, for the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from actors import LONG, STEP_OVER_LOCKS, Act, Scene, set_scene
from guarantees import Violation, at_any_time, orphans
from sqlalchemy import event

from jobq.store.rescuing import rescue
from jobq.tables import all_jobs, workers

COMMIT = 1_000  # to stop before the COMMIT instead of a statement of that number
PATIENCE = 30
BLOCKED = sa.text("SELECT cardinality(pg_blocking_pids(:pid)) > 0")
Picture = tuple[Any, ...]


class Gate:
    """Where an act stops until it may go on."""

    def __init__(self, stop_at: int | None) -> None:
        self.stop_at = stop_at
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.statements = 0

    def pass_(self, statement: int) -> None:
        if statement == self.stop_at:
            self.reached.set()
            assert self.go_on.wait(PATIENCE)


class Stage:
    """Three connections: two for the acts, one that looks."""

    def __init__(self, engine: sa.Engine, pool: ThreadPoolExecutor, acts: dict[str, Act]) -> None:
        self._pool = pool
        self._acts = acts
        self._connections = [engine.connect(), engine.connect()]
        self._pids = [each.connection.driver_connection.info.backend_pid for each in self._connections]  # type: ignore[union-attr]
        for each in self._connections:
            each.rollback()
        self.watch = engine.connect()
        self._singles: dict[tuple[Scene, tuple[str, ...]], Picture] = {}
        self.by_hand: set[int] = set()
        self.played = self.waited = 0

    def close(self) -> None:
        for each in (*self._connections, self.watch):
            each.close()

    def all_orders(self, scene: Scene, first: str, second: str) -> Iterator[Violation]:
        """The second in every gap of the first, committed there or left open."""
        stop_at, is_over = 1, False
        while not is_over:
            stop_at, is_over = (COMMIT, True) if stop_at > self._length(scene, first) else (stop_at, False)
            for is_left_open in (False, True):
                yield from self._play(scene, first, second, stop_at, is_left_open)
            stop_at += 1

    def _length(self, scene: Scene, act: str) -> int:
        """How many statements it is, at least the one that every act begins with."""
        self._alone(scene, (act,))
        return self._last.statements

    def _play(self, scene: Scene, first: str, second: str, stop_at: int, is_left_open: bool) -> Iterator[Violation]:
        allowed = [self._alone(scene, (first, second)), self._alone(scene, (second, first))]
        allowed += [self._alone(scene, (first,))] if second in STEP_OVER_LOCKS else []
        allowed += [self._alone(scene, (second,))] if first in STEP_OVER_LOCKS else []
        id_ = self._set(scene)
        gates = Gate(stop_at), Gate(COMMIT if is_left_open else None)
        one = self._begin(0, first, id_, gates[0])
        self._until_still(one, gates[0], 0)
        other = self._begin(1, second, id_, gates[1])
        self.waited += self._until_still(other, gates[1], 1)
        gates[0].reached.clear()
        gates[0].go_on.set()
        self.waited += self._until_still(one, gates[0], 0)  # it may wait for the other, which is left open
        gates[1].go_on.set()
        ended = [one.result(PATIENCE), other.result(PATIENCE)]
        self.played += 1
        for violation in self._judge(id_, allowed, ended):
            where = f"{second!r} {'open ' if is_left_open else ''}before {stop_at} of {first!r}; {scene}"
            yield violation._replace(what=f"{violation.what}: {where}")

    def _judge(self, id_: int, allowed: list[Picture], ended: list[bool]) -> Iterator[Violation]:
        with self.watch.begin():
            yield from at_any_time(self.watch)
            if (now := self._picture()) not in allowed:
                yield Violation("G3", id_, f"{now} is what no order of the two gives: {allowed}")
        if sum(ended) > 1:
            yield Violation("G4", id_, "two ends of one claim were accepted")
        yield from self._without_orphans()

    def _without_orphans(self) -> Iterator[Violation]:
        """The next pass of a rescuer leaves nothing behind; by a rescuer that looks where a worker was lost."""
        with self.watch.begin():
            rescue(self.watch, connected_for=LONG, look_everywhere=False, channel=None)
            yield from orphans(self.watch)

    def _alone(self, scene: Scene, acts: tuple[str, ...]) -> Picture:
        """What one after the other gives."""
        if (scene, acts) not in self._singles or len(acts) == 1:
            id_ = self._set(scene)
            for act in acts:
                self._last = Gate(None)
                self._begin(0, act, id_, self._last).result(PATIENCE)
            with self.watch.begin():
                self._singles[scene, acts] = self._picture()
        return self._singles[scene, acts]

    def _set(self, scene: Scene) -> int:
        with self.watch.begin():
            return set_scene(self.watch, scene)

    def _begin(self, n: int, act: str, id_: int, gate: Gate) -> Future[bool]:
        if act == "retry by hand":
            self.by_hand.add(id_)
        return self._pool.submit(_act, self._connections[n], self._acts[act], id_, gate)

    def _until_still(self, future: Future[bool], gate: Gate, n: int) -> bool:
        """Until it has ended, stands at its gate or waits for a lock: then True."""
        while not future.done() and not gate.reached.is_set():
            wait([future], 0.001)
            if not future.done() and not gate.reached.is_set():
                with self.watch.begin():
                    if self.watch.execute(BLOCKED, {"pid": self._pids[n]}).scalar_one():
                        return True
        return False

    def _picture(self) -> Picture:
        names = ("state", "worker_id", "attempt", "failures")
        errors = sa.func.jsonb_array_length(all_jobs.c.errors)
        rows = self.watch.execute(sa.select(*[all_jobs.c[name] for name in names], errors)).all()
        there = self.watch.scalars(sa.select(workers.c.id).order_by(workers.c.id))  # whose lease is over, time decides
        return tuple(map(tuple, rows)), tuple(there)


def _act(connection: sa.Connection, act: Act, id_: int, gate: Gate) -> bool:
    connection.info["gate"] = gate
    with connection.begin():
        ended = act(connection, id_)
        gate.pass_(COMMIT)
    return ended


@contextmanager
def stage(engine: sa.Engine, acts: dict[str, Act]) -> Iterator[Stage]:
    """Acts on connections whose statements are counted, and stopped at."""

    def count(connection: sa.Connection, *_: Any) -> None:
        if (gate := connection.info.get("gate")) is not None:
            gate.statements += 1
            gate.pass_(gate.statements)

    event.listen(engine, "before_cursor_execute", count)
    with ThreadPoolExecutor(2) as pool:
        place = Stage(engine, pool, acts)
        try:
            yield place
        finally:
            place.close()
            event.remove(engine, "before_cursor_execute", count)
