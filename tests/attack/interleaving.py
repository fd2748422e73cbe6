"""Two acts at once on real connections, in every order of their steps."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from actors import LONG, STEP_OVER_LOCKS, Act, Scene, set_scene
from guarantees import Violation, at_any_time, orphans
from sqlalchemy import event
from turns import PATIENCE, Order, Performance, Turns

from jobq.store.rescuing import rescue
from jobq.tables import all_jobs, workers

BLOCKED = sa.text("SELECT cardinality(pg_blocking_pids(:pid)) > 0")
Picture = tuple[Any, ...]


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
        """Every order of the steps of both: wherever both could go on, one play for each.

        One that waits for a lock has no choice but to go on when it gets it, so such orders are not played twice.
        """
        beginnings: list[Order] = [[]]
        while beginnings:
            yield from self._play(scene, first, second, beginnings.pop(), beginnings)

    def _play(
        self, scene: Scene, first: str, second: str, beginning: Order, others: list[Order]
    ) -> Iterator[Violation]:
        allowed = [self._alone(scene, (first, second)), self._alone(scene, (second, first))]
        allowed += [self._alone(scene, (first,))] if second in STEP_OVER_LOCKS else []
        allowed += [self._alone(scene, (second,))] if first in STEP_OVER_LOCKS else []
        id_ = self._set(scene)
        turns = Turns(), Turns()
        acts = [self._begin(n, act, id_, turns[n]) for n, act in enumerate((first, second))]
        done = Performance(acts, turns)
        self._perform(done, beginning, others)
        self.played += 1
        for violation in self._judge(id_, allowed, done.ended()):
            where = f"{done.order} of {first!r} and {second!r}; {scene}"
            yield violation._replace(what=f"{violation.what}: {where}")

    def _perform(self, play: Performance, beginning: Order, others: list[Order]) -> None:
        """Goes on from a beginning with the first one that can; what else could have been goes to `others`."""
        self._until_still(play)
        while ready := play.can_step():
            n = len(play.order)
            chosen = beginning[n] if n < len(beginning) else ready[0]
            if n >= len(beginning) and len(ready) > 1:
                others.append([*play.order, ready[1]])
            assert chosen in ready, f"after {play.order} only {ready} can go on, not as before"
            play.step(chosen)
            self.waited += chosen in self._until_still(play)

    def _until_still(self, play: Performance) -> set[int]:
        """Until each has ended, waits for its turn, or waits for a lock: those that wait for one."""
        while moving := [n for n in play.running() if not play.is_still(n)]:
            # Asked when the others are still: one that is about to commit will let go of its locks.
            if all(self._is_blocked(n) for n in moving):
                return set(moving)
        return set()

    def _is_blocked(self, n: int) -> bool:
        with self.watch.begin():
            return bool(self.watch.execute(BLOCKED, {"pid": self._pids[n]}).scalar_one())

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
        if (scene, acts) not in self._singles:
            id_ = self._set(scene)
            for act in acts:
                self._begin(0, act, id_, Turns(is_free=True)).result(PATIENCE)
            with self.watch.begin():
                self._singles[scene, acts] = self._picture()
        return self._singles[scene, acts]

    def _set(self, scene: Scene) -> int:
        with self.watch.begin():
            return set_scene(self.watch, scene)

    def _begin(self, n: int, act: str, id_: int, turns: Turns) -> Future[bool]:
        if act == "retry by hand":
            self.by_hand.add(id_)
        future = self._pool.submit(_act, self._connections[n], self._acts[act], id_, turns)
        future.add_done_callback(lambda _: turns.still.set())
        return future

    def _picture(self) -> Picture:
        names = ("state", "worker_id", "attempt", "failures")
        errors = sa.func.jsonb_array_length(all_jobs.c.errors)
        rows = self.watch.execute(sa.select(*[all_jobs.c[name] for name in names], errors)).all()
        there = self.watch.scalars(sa.select(workers.c.id).order_by(workers.c.id))  # whose lease is over, time decides
        return tuple(map(tuple, rows)), tuple(there)


def _act(connection: sa.Connection, act: Act, id_: int, turns: Turns) -> bool:
    connection.info["turns"] = turns
    with connection.begin():
        ended = act(connection, id_)
        turns.wait()  # before the COMMIT
    return ended


@contextmanager
def stage(engine: sa.Engine, acts: dict[str, Act]) -> Iterator[Stage]:
    """Acts on connections whose statements wait for their turn."""

    def wait(connection: sa.Connection, *_: Any) -> None:
        if (turns := connection.info.get("turns")) is not None:
            turns.wait()

    event.listen(engine, "before_cursor_execute", wait)
    with ThreadPoolExecutor(2) as pool:
        place = Stage(engine, pool, acts)
        try:
            yield place
        finally:
            place.close()
            event.remove(engine, "before_cursor_execute", wait)
