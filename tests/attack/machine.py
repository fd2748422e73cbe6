"""The reference beside the real thing: whatever hypothesis thinks of is done to both, and they have to agree."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any, ClassVar, TypeVar

import sqlalchemy as sa
from hand import Hand, ended_as, pass_hours
from histories import HOURS, HOWS, KEYS, NUMBERS, World, answer_of, enqueue, options_of, refusal_of, wants
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from laws import broken
from likeness import assert_alike
from reference import FIFO, QUEUES, Answer, Reference, Row, Want

import jobq
from jobq import testing
from jobq.store import rescuing
from jobq.tables import all_jobs
from jobq.worker.held import Held

EMPTY = "TRUNCATE jobq.jobs, jobq.finished_jobs, jobq.workers, jobq.slots, jobq.queues, jobq.kinds, jobq.leader"
WAITS = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = :pid"
NOBODY = 10**15
T = TypeVar("T")


class Machine(RuleBasedStateMachine):
    world: ClassVar[World]

    def __init__(self) -> None:
        super().__init__()
        self.numbers = count(1)
        self.model = Reference(keeps={"brittle": 2}, fails=frozenset({"brittle"}))
        self.dead: set[int] = set()
        self.held: list[tuple[Hand, Held, Row]] = []
        with self.world.engine.begin() as connection:
            connection.exec_driver_sql(EMPTY)
            for name, most in QUEUES.items():
                limit: dict[str, Any] = {"fifo": True} if name == FIFO else {"concurrency": most or 0}
                jobq.set_queue(connection, name, **limit)
            self.hands = [self._new_hand(connection), self._new_hand(connection)]

    @contextmanager
    def both(self) -> Iterator[sa.Connection]:
        """A transaction, of the database and of the reference."""
        self.world.rules += 1
        self.model.begin()
        with self.world.engine.begin() as connection:
            yield connection

    # ---- applications

    @initialize(wanted=st.lists(wants(), min_size=6, max_size=12))
    def begin(self, wanted: list[Want]) -> None:
        self.enqueue(wanted, "one by one")

    @rule(wanted=st.lists(wants(), min_size=1, max_size=4), way=st.sampled_from(["one by one", "many"]))
    def enqueue(self, wanted: list[Want], way: str) -> None:
        with self.both() as connection:
            if way == "many":
                self._enqueue_many(connection, wanted)
                return
            for want in wanted:
                self._enqueue(connection, want)

    @rule(
        parts=st.lists(st.tuples(st.lists(wants(), min_size=1, max_size=2), st.booleans()), min_size=1, max_size=3),
        commits=st.booleans(),
    )
    def enqueue_in_savepoints(self, parts: list[tuple[list[Want], bool]], commits: bool) -> None:
        """Each part in a savepoint that is kept or not, in a transaction that commits or not."""
        self._seen("rolled back", not commits or not all(is_kept for _, is_kept in parts))
        before = copy.deepcopy(self.model)
        with self.both() as connection:
            for wanted, is_kept in parts:
                inside, savepoint = copy.deepcopy(self.model), connection.begin_nested()
                for want in wanted:
                    self._enqueue(connection, want)
                if is_kept:
                    savepoint.commit()
                else:
                    savepoint.rollback()
                    self.model = inside
            if not commits:
                connection.rollback()
                self.model = replace(before, tick=self.model.tick)

    @rule(key=st.sampled_from(KEYS), first_commits=st.booleans())
    def enqueue_twice_at_once(self, key: str, first_commits: bool) -> None:
        """The second waits for the first one's transaction where they want the same key."""
        want = Want(0, "steady", "plain", 1, 0, 3, key)
        before = copy.deepcopy(self.model)
        self._seen("two at once", self.model.holder_of(key) is None)
        with ThreadPoolExecutor(1) as other, self.world.engine.connect() as first:
            self.model.begin()
            self._enqueue(first, want)
            second = self._numbered(want)
            begun: Future[int] = Future()
            answered = other.submit(self._enqueue_elsewhere, second, begun)
            self._until_waits_or_ends(begun.result(), answered)
            first.commit() if first_commits else first.rollback()
            if not first_commits:
                self.model = replace(before, tick=self.model.tick)
            self.model.begin()
            given = answered.result()
            assert given == self.model.enqueue(second, given[0])

    # ---- operators

    @rule(number=NUMBERS, way=st.sampled_from(["retry", "retry", "retry all", "cancel", "cancel running"]))
    def repair(self, number: int, way: str) -> None:
        with self.both() as connection:
            if way == "retry all":
                self._retry_all(connection, ["dead", "done", "cancelled"][number % 3])
                return
            id_, running = self._job(number), way == "cancel running"
            if way == "retry":
                ended = [row.id for row in self.model.rows.values() if not row.is_open]
                id_ = ended[number % len(ended)] if ended and number % 3 else id_  # mostly one that may be retried
                refused, expected = refusal_of(jobq.retry, connection, id_), self.model.retry(id_)
            else:
                refused = refusal_of(jobq.cancel, connection, id_, running=running)
                expected = self.model.cancel(id_, running=running)
            assert refused == self._seen(f"{way} {expected}", expected)

    @rule(queue=st.sampled_from(list(QUEUES)), hours=st.sampled_from([0, 0, 1, 2]))
    def pause_or_resume(self, queue: str, hours: int) -> None:
        with self.both() as connection:
            if hours:
                jobq.pause(connection, queue, timedelta(hours=hours))
                self.model.pause(queue, hours)
            else:
                assert jobq.resume(connection, queue) == self.model.resume(queue)

    @rule(hours=HOURS, cleans=st.booleans())
    def time_passes(self, hours: int, cleans: bool) -> None:
        with self.both() as connection:
            pass_hours(connection, hours)
            self.model.hour += hours
        if cleans:
            self.model.begin()
            assert jobq.clean(self.world.engine) == self._seen("clean", self.model.clean())

    # ---- workers

    @rule(hand=st.integers(0, 1), most=st.integers(1, 3))
    def take(self, hand: int, most: int) -> None:
        one = self.hands[hand]
        for _ in range(most):
            with self.both() as connection:
                held = one.takes(connection)
                row = self.model.take(one.id)
                assert (held and held.job.id) == (row and row.id)
            if held is None or row is None:
                return
            self._seen(f"claim in {row.queue}", True)
            self.held.append((one, held, replace(row)))

    @precondition(lambda self: self.held)
    @rule(ends=st.lists(st.tuples(NUMBERS, HOWS, HOURS), min_size=1, max_size=3))
    def end(self, ends: list[tuple[int, str, int]]) -> None:
        """Of whatever was ever claimed and not ended: also late, by a worker that is dead or has lost the job."""
        for number, how, hours in ends[: len(self.held)]:
            self._end(self.held.pop(number % len(self.held)), how, hours)

    def _end(self, claimed: tuple[Hand, Held, Row], how: str, hours: int) -> None:
        one, held, row = claimed
        with self.both() as connection:
            one.ends(connection, held, ended_as(how, hours))
            self._seen(how if self.model.end(row, how, hours) else "late write", True)

    @rule(how=HOWS, hours=HOURS)
    def work_once(self, how: str, hours: int) -> None:
        with self.both() as connection:
            ended = ended_as(how, hours)
            worked = testing.work_once(self.world.app, connection, raise_errors=False, state=ended)
            row = self.model.take(0 if worked is None else worked.job.worker_id or NOBODY)
            assert (worked and worked.job.id) == (row and row.id)
            if worked is not None and row is not None:
                taken = replace(row)
                self.model.end(taken, how, hours)
                row.worker = worked.job.worker_id

    @rule(hand=st.integers(0, 1), fate=st.sampled_from(["beats", "dies", "dies", "leaves"]), rescued=st.booleans())
    def live_or_die(self, hand: int, fate: str, rescued: bool) -> None:
        """Another worker comes for one that is gone; those that died are found at once, or later."""
        self._live_or_die(hand, fate)
        if rescued:
            self._rescue()

    @rule(hand=st.integers(0, 1), how=HOWS, hours=HOURS, again=st.booleans())
    def wake_late(self, hand: int, how: str, hours: int, again: bool) -> None:
        """A worker that was frozen until its jobs were taken back, and perhaps begun by another, ends them then."""
        self.take(hand, 2)
        mine = [each for each in self.held if each[0] is self.hands[hand]]
        self.live_or_die(hand, "dies", True)
        if again:
            self.take(hand, 2)
        for each in mine:
            self.held.remove(each)
            self._end(each, how, hours)

    def _live_or_die(self, hand: int, fate: str) -> None:
        with self.both() as connection:
            one = self.hands[hand]
            if fate == "beats":
                assert one.beats(connection)
                return
            if fate == "dies":
                one.dies(connection)
                self.dead.add(one.id)
            else:
                one.leaves(connection, [held for who, held, _ in self.held if who is one])
                self.model.leave(one.id)
            self.hands[hand] = self._new_hand(connection)

    # ---- what has to be true after each

    @invariant()
    def they_agree(self) -> None:
        assert_alike(self.world.look, self.model)

    @invariant()
    def every_law_holds(self) -> None:
        assert broken(self.world.look) == {}

    # ---- how

    def _new_hand(self, connection: sa.Connection) -> Hand:
        hand = Hand(self.world.app, None)
        hand.register(connection)
        return hand

    def _seen(self, what: str, happened: T) -> T:
        """Count what a history has come to."""
        self.world.seen[what] += bool(happened) or what.endswith("None")
        return happened

    def _numbered(self, want: Want) -> Want:
        return want._replace(number=next(self.numbers))

    def _enqueue(self, connection: sa.Connection, want: Want) -> None:
        want = self._numbered(want)
        given = enqueue(self.world.app, connection, want)
        assert given == self.model.enqueue(want, NOBODY if given is None else given[0])
        self._seen(want.change if given is None or not given[1] else "insert", True)

    def _enqueue_many(self, connection: sa.Connection, wanted: list[Want]) -> None:
        """Of one kind, each row with options of its own; what would be refused as a whole is left out."""
        alike = {want.key or object(): want._replace(kind="steady") for want in wanted if want.change != "raise"}
        several = [self._numbered(want) for want in alike.values() if not self._is_another_kinds(want)]
        handler = self.world.app.handlers["steady"]
        rows = [options_of(handler, want).args(want.number) for want in several]
        given = jobq.enqueue_many(connection, handler, rows)
        for want, each in zip(several, given, strict=True):
            assert answer_of(each) == self.model.enqueue(want, each.id)

    def _is_another_kinds(self, want: Want) -> bool:
        holder = self.model.holder_of(want.key)
        return holder is not None and holder.kind != want.kind and want.change != "ignore"

    def _enqueue_elsewhere(self, want: Want, begun: Future[int]) -> Answer:
        with self.world.engine.begin() as connection:
            begun.set_result(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
            given = enqueue(self.world.app, connection, want)
        assert given is not None
        return given

    def _until_waits_or_ends(self, pid: int, answered: Future[Answer]) -> None:
        waits = sa.text(WAITS)
        while not answered.done() and not self.world.look.execute(waits, {"pid": pid}).scalar():
            pass

    def _retry_all(self, connection: sa.Connection, state: str) -> None:
        """Those go first that came first: of several with one key the others stay."""
        done = jobq.retry(connection, all_jobs.c.state == state)
        asked = [row.id for row in sorted(self.model.of_state(state), key=lambda row: row.id)]
        assert list(done.ids) == [id_ for id_ in asked if self.model.retry(id_) is None]

    def _rescue(self) -> None:
        with self.both() as connection:
            rescuing.rescue(connection, connected_for=timedelta(hours=1), look_everywhere=True, channel=None)
            self._seen("rescue", any(row.worker in self.dead for row in self.model.of_state("running")))
            self.model.rescue(self.dead)
            self.dead.clear()

    def _job(self, number: int) -> int:
        ids = [*self.model.rows, NOBODY]
        return ids[number % len(ids)]
