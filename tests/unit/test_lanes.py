from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worker_values import NOON, claimed

from jobq.model import Claimed, Position
from jobq.store.claiming import Claim, LaneAsk
from jobq.worker.lanes import LATE, PRIORITIES, START, Cursor, Lanes

QUICK = settings(max_examples=150, deadline=None, derandomize=True)
SECOND = timedelta(seconds=1)
INSTANT = timedelta(microseconds=1)


def serving(*queues: str, seed: int = 1) -> Lanes:
    lanes = Lanes(random.Random(seed))
    lanes.serve(dict.fromkeys(queues, 1))
    return lanes


def cursors(lanes: Lanes) -> dict[tuple[str, int], Cursor]:
    return {(ask.queue, ask.priority): Cursor(ask.run_at, ask.id) for ask in lanes.ask(1)}


def job(id_: int, run_at: datetime, *, queue: str = "q", priority: int = 1) -> Claimed:
    return claimed(id_, run_at=run_at, queue=queue, priority=priority)


def absorb(lanes: Lanes, jobs: Sequence[Claimed], *, room: int, now: datetime = NOON) -> None:
    """What a claim of all lanes gave, each lane's jobs in the order of the lanes asked for."""
    asked = lanes.ask(room)
    order = [(ask.queue, ask.priority) for ask in asked]
    lanes.absorb(asked, Claim(now, tuple(sorted(jobs, key=lambda each: order.index(each.lane)))), room=room)


def test_a_claim_asks_for_every_lane_once_by_priority() -> None:
    asked = serving("a", "b", "c").ask(7)

    assert len({(ask.queue, ask.priority) for ask in asked}) == len(asked) == 12
    for queue in "abc":
        assert [ask.priority for ask in asked if ask.queue == queue] == list(PRIORITIES)
    assert {ask.limit for ask in asked} == {7}
    assert {Cursor(ask.run_at, ask.id) for ask in asked} == {START}


def test_queues_come_first_by_their_weight() -> None:
    lanes = Lanes(random.Random(5))
    lanes.serve({"often": 9, "seldom": 1})

    first = [lanes.ask(1)[0].queue for _ in range(2_000)]

    assert first.count("often") / len(first) == pytest.approx(0.9, abs=0.03)


def test_a_lane_read_to_its_end_goes_on_a_little_before_the_claim() -> None:
    lanes = serving("q")

    absorb(lanes, [job(7, NOON - 60 * SECOND)], room=10)

    assert set(cursors(lanes).values()) == {Cursor(NOON - LATE, 0)}


def test_a_lane_read_to_its_end_goes_on_behind_its_last_job_when_that_is_later() -> None:
    lanes = serving("q")

    absorb(lanes, [job(7, NOON - SECOND), job(8, NOON - SECOND)], room=10)

    assert cursors(lanes)["q", 1] == Cursor(NOON - SECOND, 8)


def test_of_a_full_claim_the_last_lane_goes_on_behind_its_last_job() -> None:
    lanes = serving("q")

    absorb(lanes, [job(1, NOON - 60 * SECOND), job(2, NOON - 50 * SECOND)], room=2)

    assert cursors(lanes)["q", 1] == Cursor(NOON - 50 * SECOND, 2)


def test_of_a_full_claim_the_lanes_before_the_last_were_read_to_their_end_and_those_behind_it_not_at_all() -> None:
    lanes = serving("q")

    absorb(lanes, [job(1, NOON - 60 * SECOND, priority=0), job(2, NOON - 50 * SECOND, priority=2)], room=2)

    assert cursors(lanes) == {
        ("q", 0): Cursor(NOON - LATE, 0),
        ("q", 1): Cursor(NOON - LATE, 0),
        ("q", 2): Cursor(NOON - 50 * SECOND, 2),
    }  # and the last one is not asked for as long as one before it has more than its queue's share


def test_a_cursor_never_goes_back_by_itself() -> None:
    lanes = serving("q")
    absorb(lanes, [job(9, NOON - SECOND)], room=10)

    absorb(lanes, [], room=10, now=NOON + SECOND)

    assert cursors(lanes)["q", 1] == Cursor(NOON - SECOND, 9)


@pytest.mark.parametrize(
    ("told", "cursor"),
    [
        (NOON - 3600 * SECOND, Cursor(NOON - 3600 * SECOND - INSTANT, 0)),
        (NOON - SECOND, Cursor(NOON - SECOND - INSTANT, 0)),
        (NOON, Cursor(NOON - SECOND, 9)),
        (NOON + 3600 * SECOND, Cursor(NOON - SECOND, 9)),
    ],
    ids=["long ago", "the same moment", "later", "in an hour"],
)
def test_a_notification_sets_its_lane_back_to_just_before_the_job_and_never_forward(
    told: datetime, cursor: Cursor
) -> None:
    lanes = serving("q")
    absorb(lanes, [job(9, NOON - SECOND)], room=10)
    before = cursors(lanes)

    lanes.set_back(Position("q", 1, told))

    assert cursors(lanes) == {**before, ("q", 1): cursor}


def test_a_notification_for_a_lane_that_was_not_read_yet_changes_nothing() -> None:
    lanes = serving("q")

    lanes.set_back(Position("q", 1, NOON))
    lanes.set_back(Position("other", 1, NOON))

    assert set(cursors(lanes).values()) == {START}
    assert lanes.queues == {"q"}


@pytest.mark.parametrize("is_known", [True, False], ids=["a lane read before", "its first claim"])
def test_what_is_told_while_a_claim_is_in_flight_is_not_overtaken_by_its_answer(is_known: bool) -> None:
    lanes = serving("q")
    if is_known:
        absorb(lanes, [], room=10, now=NOON - 60 * SECOND)
    asked = lanes.ask(10)

    lanes.set_back(Position("q", 1, NOON - 20 * SECOND))
    lanes.absorb(asked, Claim(NOON, ()), room=10)

    assert cursors(lanes)["q", 1] == Cursor(NOON - 20 * SECOND - INSTANT, 0)
    assert cursors(lanes)["q", 2] == Cursor(NOON - LATE, 0)


def test_a_sweep_starts_from_the_beginning() -> None:
    lanes = serving("q")
    absorb(lanes, [job(9, NOON)], room=10)

    lanes.forget()

    assert set(cursors(lanes).values()) == {START}


def test_a_clock_that_was_set_back_makes_the_worker_look_everywhere() -> None:
    lanes = serving("q")
    absorb(lanes, [job(9, NOON)], room=10)

    absorb(lanes, [], room=10, now=NOON - 3600 * SECOND)

    assert set(cursors(lanes).values()) == {START}


def test_queues_that_stay_keep_their_cursors() -> None:
    lanes = serving("q", "gone")
    absorb(lanes, [job(9, NOON)], room=10)

    lanes.serve({"q": 3, "new": 1})

    assert lanes.queues == {"q", "new"}
    assert cursors(lanes)["q", 1] == Cursor(NOON, 9)
    assert cursors(lanes)["new", 1] == START


def test_a_queue_is_added_once() -> None:
    lanes = serving("q")

    for queue in ("q", "tenant-7", "tenant-7"):
        lanes.add(queue)

    assert lanes.queues == {"q", "tenant-7"}
    assert len(lanes.ask(1)) == 8


class Table:
    """The jobs of a database, and claims of them as the statement makes them."""

    def __init__(self) -> None:
        self.now = NOON
        self.waiting: dict[int, Claimed] = {}
        self.running: list[Claimed] = []
        self.locked: set[int] = set()
        self._ids = count(1)

    def insert(self, queue: str, priority: int, run_at: datetime) -> Position:
        id_ = next(self._ids)
        self.waiting[id_] = job(id_, run_at, queue=queue, priority=priority)
        return Position(queue, priority, run_at)

    def claim(self, asked: Sequence[LaneAsk], room: int) -> Claim:
        taken: list[Claimed] = []
        for ask in asked:
            behind = [one for one in self.due(ask.queue, ask.priority) if (one.run_at, one.id) > (ask.run_at, ask.id)]
            taken += behind[: min(ask.limit, room - len(taken))]
        for one in taken:
            del self.waiting[one.id]
        self.running += taken
        return Claim(self.now, tuple(taken))

    def due(self, *lane: object) -> list[Claimed]:
        found = [one for one in self.waiting.values() if one.run_at <= self.now and one.id not in self.locked]
        return sorted((one for one in found if not lane or one.lane == lane), key=lambda one: (one.run_at, one.id))


def claim_once(lanes: Lanes, table: Table, room: int) -> Claim:
    asked = lanes.ask(room)
    claim = table.claim(asked, room)
    lanes.absorb(asked, claim, room=room)
    return claim


QUEUES, SPANS = st.sampled_from("ab"), st.integers(-3_600, 3_600).map(lambda tenths: timedelta(seconds=tenths / 10))
ENQUEUES = st.tuples(st.just("enqueue"), st.tuples(QUEUES, st.sampled_from(PRIORITIES), SPANS))
CLAIMS = st.tuples(st.just("claim"), st.integers(1, 4))
WAITS = st.tuples(st.just("wait"), st.floats(0, 20).map(lambda seconds: timedelta(seconds=seconds)))
GIVES = st.tuples(st.just("give back"), st.integers(0, 20))
CLOCKS = st.tuples(st.just("wait"), SPANS)
LOCKS = st.tuples(st.just("lock"), st.integers(1, 30))
SEEDS = st.integers(0, 2**16)


def play(lanes: Lanes, table: Table, step: tuple[str, object], *, is_told: bool) -> None:
    match step:
        case "enqueue", (str(queue), int(priority), timedelta() as offset):
            position = table.insert(queue, priority, table.now + offset)
            if is_told and offset <= timedelta(0):
                lanes.set_back(position)
        case "claim", int(room):
            claim_once(lanes, table, room)
        case "wait", timedelta() as span:
            table.now += span
        case "give back", int(n) if table.running:
            one = table.running.pop(n % len(table.running))
            table.waiting[one.id] = one
            if is_told:
                lanes.set_back(Position(one.queue, one.priority, one.run_at))
        case "lock", int(id_):
            table.locked ^= {id_}


@QUICK
@given(st.lists(st.one_of(ENQUEUES, CLAIMS, CLOCKS, GIVES, LOCKS), max_size=60), st.integers(1, 4), SEEDS)
def test_no_job_is_passed_by_for_longer_than_a_sweep(steps: list[tuple[str, object]], room: int, seed: int) -> None:
    lanes, table = serving("a", "b", seed=seed), Table()
    for step in steps:
        play(lanes, table, step, is_told=False)
    due = {one.id for one in table.due()}

    lanes.forget()
    found: set[int] = set()
    while len(claim := claim_once(lanes, table, room).jobs) == room or lanes.has_more:
        found |= {one.id for one in claim}

    assert found | {one.id for one in claim} == due


@QUICK
@given(st.lists(st.one_of(ENQUEUES, ENQUEUES, CLAIMS, WAITS, GIVES), max_size=60), SEEDS)
def test_where_every_due_job_is_told_no_claim_with_room_left_leaves_one(
    steps: list[tuple[str, object]], seed: int
) -> None:
    lanes, table = serving("a", "b", seed=seed), Table()
    for step in steps:
        play(lanes, table, step, is_told=True)

        if step[0] == "claim":
            room = 4
            while len(claim_once(lanes, table, room).jobs) == room or lanes.has_more:
                pass
            assert table.due() == []


@QUICK
@given(st.lists(st.one_of(ENQUEUES, CLAIMS, CLOCKS, GIVES), max_size=40), SEEDS)
def test_a_cursor_is_never_later_than_the_clock(steps: list[tuple[str, object]], seed: int) -> None:
    lanes, table = serving("a", "b", seed=seed), Table()
    for step in steps:
        play(lanes, table, step, is_told=True)

        if step[0] == "claim":
            assert all(cursor.run_at <= table.now for cursor in cursors(lanes).values())
