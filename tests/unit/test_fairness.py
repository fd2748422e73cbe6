from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worker_values import claimed

from jobq.fairness import in_turns, part_of, shuffled

DRAWS = 20_000


@pytest.mark.parametrize(
    "weights",
    [{"a": 1, "b": 1}, {"a": 5, "b": 3, "c": 1}, {"a": 100, "b": 1}, {"only": 7}],
    ids=str,
)
def test_f22_each_queue_comes_first_as_often_as_its_weight_says(weights: dict[str, int]) -> None:
    source = random.Random(7)

    first = Counter(shuffled(weights, source)[0] for _ in range(DRAWS))

    for queue, weight in weights.items():
        assert first[queue] / DRAWS == pytest.approx(weight / sum(weights.values()), abs=0.015)


def test_f22_the_second_place_goes_by_the_weights_of_the_rest() -> None:
    source = random.Random(7)
    weights = {"a": 6, "b": 3, "c": 1}

    orders = [shuffled(weights, source) for _ in range(DRAWS)]

    after_a = Counter(order[1] for order in orders if order[0] == "a")
    assert after_a["b"] / after_a.total() == pytest.approx(3 / 4, abs=0.015)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.dictionaries(st.text(max_size=3), st.integers(1, 2**31 - 1), max_size=20), st.integers())
def test_every_queue_comes_once(weights: dict[str, int], seed: int) -> None:
    assert Counter(shuffled(weights, random.Random(seed))) == Counter(weights.keys())


def test_the_same_source_gives_the_same_order() -> None:
    weights = dict.fromkeys("abcdefgh", 1)

    assert shuffled(weights, random.Random(3)) == shuffled(weights, random.Random(3))


@pytest.mark.parametrize("room", [1, 2, 7, 20])
def test_a_part_of_the_room_adds_up_to_its_share(room: int) -> None:
    source = random.Random(1)
    parts = [part_of(room, 3, 7, source) for _ in range(4000)]

    assert sum(parts) / (room * 4000) == pytest.approx(0.3, abs=0.02)
    assert max(parts) - min(parts) <= 1
    assert part_of(room, 3, 0, source) == room
    assert part_of(room, 0, 3, source) == 0


LANES = st.tuples(st.sampled_from("abc"), st.integers(0, 3))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(LANES, max_size=60))
def test_f22_in_turns_no_job_is_lost_and_each_lane_keeps_its_order(lanes: list[tuple[str, int]]) -> None:
    lanes += [("flood", 1)] * 300
    jobs = [claimed(id_, queue=queue, priority=priority) for id_, (queue, priority) in enumerate(lanes, 1)]
    jobs.sort(key=lambda job: job.priority)  # as a claim gives them

    order = in_turns(jobs, {"a": 5, "b": 3})

    assert sorted(job.id for job in order) == sorted(job.id for job in jobs)
    assert [job.priority for job in order] == sorted(job.priority for job in jobs)
    for lane in set(lanes):
        ids = [job.id for job in order if (job.queue, job.priority) == lane]
        assert ids == sorted(ids)


def test_f22_jobs_whose_queues_have_about_their_shares_start_as_they_were_claimed() -> None:
    jobs = [claimed(id_, queue="abbb"[id_ % 4]) for id_ in range(1, 41)]

    assert in_turns(jobs, {"a": 1, "b": 3}) is jobs
    assert in_turns(jobs[::4], {"a": 1}) == jobs[::4]


def test_f22_queues_take_turns_by_weight_whatever_was_there_first() -> None:
    flood = [claimed(id_, queue="images") for id_ in range(1, 501)]
    few = [claimed(id_, queue="email") for id_ in range(501, 531)]

    order = [job.queue for job in in_turns([*flood, *few], {"images": 2, "email": 3})]

    assert order[:45].count("email") == pytest.approx(27, abs=1)
    assert order.index("images", 50) == 50  # the few are through
