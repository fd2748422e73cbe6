"""The laws of fairness, without a clock: shares by weight, floods, queues that run dry."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worker_values import NOON, claimed

from jobq.fairness import allot
from jobq.store.claiming import Claim
from jobq.worker.lanes import Lanes

QUICK = settings(max_examples=100, deadline=None, derandomize=True)
WEIGHTS = {"default": 5, "email": 3, "images": 2}
MANY = 10**9


class Flood:
    """Queues that hold so many jobs, all due, and claims of them as the statement makes them."""

    def __init__(self, numbers: Mapping[tuple[str, int], int]) -> None:
        self.waiting = Counter(numbers)
        self._ids = count(1)

    def claim(self, lanes: Lanes, room: int) -> list[str]:
        """The queues of the jobs that one claim gives."""
        asked, taken = lanes.ask(room), []
        for ask in asked:
            lane = ask.queue, ask.priority
            number = min(ask.limit, room - len(taken), self.waiting[lane])
            self.waiting[lane] -= number
            taken += [claimed(next(self._ids), queue=ask.queue, priority=ask.priority) for _ in range(number)]
        lanes.absorb(asked, Claim(NOON, tuple(taken)), room=room)
        return [job.queue for job in taken]


def serving(weights: Mapping[str, int], seed: int = 1) -> Lanes:
    lanes = Lanes(random.Random(seed))
    lanes.serve(weights)
    return lanes


def drain(lanes: Lanes, table: Flood, room: int, most: int = MANY) -> list[str]:
    """The queues of the next `most` jobs, in the order of their claims."""
    order: list[str] = []
    while len(order) < most:
        taken = table.claim(lanes, room)
        order += taken
        if len(taken) < room and not lanes.has_more:
            break
    return order[:most]


@QUICK
@given(
    st.integers(1, 500),
    st.dictionaries(st.text(min_size=1, max_size=2), st.integers(1, 1000), min_size=1),
    st.integers(),
)
def test_a_room_is_divided_whole_and_no_share_is_off_by_one(room: int, weights: dict[str, int], seed: int) -> None:
    allotted = allot(room, weights, random.Random(seed))

    assert sum(allotted.values()) == room
    for queue, weight in weights.items():
        assert abs(allotted[queue] - room * weight / sum(weights.values())) < 1


@pytest.mark.parametrize("room", [1, 2, 3, 7, 20, 100])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_f22_with_all_queues_full_each_has_its_share(room: int, seed: int) -> None:
    table = Flood({(queue, 1): 300 * weight for queue, weight in WEIGHTS.items()})

    taken = Counter(drain(serving(WEIGHTS, seed), table, room, most=2000))

    for queue, weight in WEIGHTS.items():
        assert taken[queue] / 2000 == pytest.approx(weight / 10, abs=0.05), queue


@pytest.mark.parametrize("room", [1, 4, 20])
def test_f22_a_flood_does_not_keep_a_few_jobs_of_another_queue_waiting(room: int) -> None:
    table = Flood({("images", 1): 2000, ("email", 1): 50})

    order = drain(serving(WEIGHTS), table, room)

    last = max(place for place, queue in enumerate(order) if queue == "email")
    assert order[: last + 1].count("images") < 400
    assert len(order) == 2050


def test_f22_the_second_claim_already_takes_from_forty_floods() -> None:
    weights = {str(number): 1 + number % 5 for number in range(40)}
    table, lanes = Flood({(queue, 1): 5000 for queue in weights}), serving(weights)

    table.claim(lanes, 400)
    shares = [Counter(table.claim(lanes, 400)) for _ in range(2)]

    for queue, weight in weights.items():
        assert [share[queue] for share in shares] == pytest.approx([400 * weight / 120] * 2, abs=1), queue


@pytest.mark.parametrize("room", [1, 4, 20])
def test_f22_floods_in_two_priorities_are_no_two_shares(room: int) -> None:
    table = Flood({("default", 0): 1500, ("default", 1): 1500, ("default", 2): 1500, ("email", 1): 1500})

    taken = Counter(drain(serving({"default": 1, "email": 1}), table, room, most=2000))

    assert taken["email"] / 2000 == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("room", [1, 4, 20])
def test_an_empty_queue_gives_its_share_away_and_one_that_runs_dry_too(room: int) -> None:
    table = Flood({("email", 1): 100, ("images", 1): 1000})
    lanes = serving(WEIGHTS)
    statements = 0
    while table.waiting.total():
        table.claim(lanes, room)
        statements += 1

    assert statements <= 1100 / room + 5


@pytest.mark.parametrize("queues", [["default"], ["default", "email"], ["default", "email", "images"]])
def test_a_claim_fills_its_room_while_there_is_enough(queues: list[str]) -> None:
    table = Flood({(queue, 1): 1000 for queue in queues})
    lanes = serving(WEIGHTS)

    sizes = [len(table.claim(lanes, 20)) for _ in range(40)]

    assert sizes == [20] * 40


@QUICK
@given(
    st.dictionaries(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), st.integers(0, 30)),
    st.integers(1, 8),
    st.integers(0, 2**16),
)
def test_a_claim_that_says_there_is_no_more_has_left_nothing(
    numbers: dict[tuple[str, int], int], room: int, seed: int
) -> None:
    table = Flood(numbers)

    order = drain(serving({"a": 1, "b": 3, "c": 9}, seed), table, room)

    assert table.waiting.total() == 0
    assert Counter(order) == Counter(
        {queue: sum(n for (name, _), n in numbers.items() if name == queue) for queue in "abc"}
    )
