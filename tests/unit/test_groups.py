"""Kinds that are claimed apart, since their executor has few places."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from worker_values import NOON, claimed

from jobq.model import Position
from jobq.worker.groups import Groups, Places, groups_of, places_of

JOB = claimed(1, queue="images")


class Bounded:
    """An executor with two places."""

    left_behind: frozenset[int] = frozenset()
    places = 2

    async def run(self, call: Any) -> Any: ...

    async def close(self) -> None: ...


def handler(executor: str, on_interrupt: str = "retry") -> Any:
    return SimpleNamespace(executor=executor, settings=SimpleNamespace(on_interrupt=on_interrupt))


def test_an_executor_with_places_gets_one_job_more_than_it_has() -> None:
    handlers = {"scale": handler("process"), "send": handler("async")}

    found = places_of({"process": Bounded(), "async": SimpleNamespace()}, handlers)  # type: ignore[dict-item]

    assert found.keys() == {"scale"}
    assert found["scale"].part_of(10) == 3


def test_where_a_dead_worker_makes_jobs_dead_none_waits_for_a_place() -> None:
    handlers = {"scale": handler("process", "fail"), "crop": handler("process")}

    found = places_of({"process": Bounded()}, handlers)  # type: ignore[dict-item]

    assert found["scale"] is found["crop"]
    assert found["scale"].part_of(10) == 2


def test_places_are_taken_from_the_claim_on_and_the_first_that_is_free_is_told() -> None:
    places, told = Places(["scale"], 2), []
    places.on_room = told.append
    places.hold(JOB)
    assert (places.part_of(10), places.is_full) == (1, False)
    places.hold(JOB)
    assert (places.part_of(10), places.is_full) == (0, True)
    assert places.without(["scale", "send"]) == ["send"]
    places.release(JOB)
    places.release(JOB)

    assert told == ["images"]
    assert places.part_of(10) == 2


def test_kinds_of_an_executor_with_places_are_a_group_of_their_own() -> None:
    places, others = Places(["scale", "crop"], 2), Places([], 100)

    found = groups_of(["crop", "scale", "send"], {"scale": places, "crop": places}, others)

    assert sorted((tuple(group.kinds), group.room is places) for group in found) == [
        (("crop", "scale"), True),
        (("send",), False),
    ]
    assert sorted(found.kinds_now) == ["crop", "scale", "send"]
    places.hold(JOB)
    places.hold(JOB)
    assert found.kinds_now == ["send"]


def test_a_worker_without_such_kinds_has_one_group_and_one_without_others_too() -> None:
    places, others = Places(["scale"], 2), Places([], 100)

    assert [tuple(group.kinds) for group in groups_of(["send"], {}, others)] == [("send",)]
    assert [tuple(group.kinds) for group in groups_of(["scale"], {"scale": places}, others)] == [("scale",)]


def test_each_group_comes_first_in_its_turn() -> None:
    places, others = Places(["scale"], 2), Places([], 100)
    found = Groups(list(groups_of(["scale", "send"], {"scale": places}, others)), random.Random(1))

    firsts = [next(iter(found)).kinds[0] for _ in range(200)]

    assert 60 < firsts.count("scale") < 140


def test_the_lanes_of_every_group_are_told_the_same() -> None:
    found = groups_of(["scale", "send"], {"scale": Places(["scale"], 2)}, Places([], 100))
    found.serve({"a": 2})
    found.add("b")
    found.set_back(Position("a", 1, NOON))

    assert found.queues == {"a", "b"}
    assert found.weight == 3
    assert [group.lanes.queues for group in found] == [{"a", "b"}] * 2
