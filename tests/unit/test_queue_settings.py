"""What code may say of a queue, and when a worker looks at the limited ones."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from worker_values import NOON, Clock, claimed

import jobq
from jobq.errors import OptionError, OptionTypeError
from jobq.queue_settings import QueueSettings, said_of
from jobq.store.claiming import Claim
from jobq.worker.limited import BETWEEN_LOOKS, LONGEST_WAIT, LimitedQueues

SECOND = timedelta(seconds=1)
PACE = jobq.per_minute(60)
WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "both limits": ({"fifo": True, "concurrency": 1}, OptionError, "fifo and concurrency"),
    "a throttle alone": ({"throttle": PACE}, OptionError, "throttle: without fifo or concurrency"),
    "a number as throttle": ({"fifo": True, "throttle": 150}, OptionTypeError, "throttle: expected a callable"),
    "a set as pause_on": ({"pause_on": {401}}, OptionTypeError, "pause_on: expected a callable"),
    "no concurrency": ({"concurrency": 0}, OptionError, "concurrency: from 1 to 1000"),
    "a word as fifo": ({"fifo": "yes"}, OptionTypeError, "fifo: expected a bool"),
    "seconds": ({"timeout": 5}, OptionTypeError, "timeout: expected a timedelta"),
    "no time": ({"timeout": timedelta(0)}, OptionError, "timeout: more than 0"),
}


@pytest.mark.parametrize(("options", "error", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_refused_at_registration(options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        jobq.App().queue("q", **options)


@pytest.mark.parametrize("limit", [{"fifo": True}, {"concurrency": 3}], ids=["fifo", "concurrency"])
def test_a_queue_has_what_it_was_declared_with(limit: dict[str, Any]) -> None:
    app = jobq.App()
    whole: dict[str, Any] = {"weight": 2, "throttle": PACE, "timeout": SECOND, "pause_on": lambda error: None, **limit}

    app.queue("q", **whole)
    app.queue("q", **whole)

    assert app.queues == {"q": QueueSettings(**whole)}
    with pytest.raises(OptionError, match=r"declared twice: (fifo|concurrency)"):
        app.queue("q", **{**whole, "fifo": not limit.get("fifo"), "concurrency": None, "throttle": None})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((3, False, None), "weight 3, no limit"),
        ((None, None, None), "weight 1, no limit"),
        ((1, True, None), "weight 1, fifo"),
        ((2, False, 4), "weight 2, concurrency 4"),
    ],
)
def test_settings_in_words(values: tuple[Any, Any, Any], said: str) -> None:
    assert said_of(*values) == said


class Looks:
    """Limited queues on a clock that stands still."""

    def __init__(self) -> None:
        self.clock = Clock(1000.0)
        self.queues = LimitedQueues(random.Random(1), self.clock)
        self.queues.serve({"a": 1, "b": 5, "c": 1}, frozenset("ab"))

    def look(self, number: int = 0, most: int = 9, next_in: timedelta | None = None, took: float = 0.0) -> float:
        """In how many seconds the next look is due after one that gave so many jobs."""
        self.queues.begin(60.0)
        found = tuple(claimed(n) for n in range(number))
        self.queues.absorb(Claim(NOON, found, None if next_in is None else NOON + next_in), most, took=took)
        return max(0.0, self.queues.due_at - self.clock())


def test_a_look_is_due_at_first_then_by_the_poll_and_when_a_slot_or_a_queue_is_ready() -> None:
    looks = Looks()

    assert looks.queues.is_due
    assert looks.look() == 60
    assert not looks.queues.is_due
    assert looks.look(next_in=5 * SECOND) == 5
    assert looks.look(number=2, next_in=3 * SECOND) == 3
    assert looks.look(next_in=1000 * SECOND) == 60
    assert looks.look(number=9) == 0


def test_a_freed_slot_is_looked_at_when_it_is_ready() -> None:
    looks = Looks()
    looks.look()

    looks.queues.freed(4 * SECOND)
    looks.queues.freed(9 * SECOND)

    assert looks.queues.due_at - looks.clock() == 4
    looks.clock.now += 4
    assert looks.queues.is_due


def test_a_worker_told_again_and_again_looks_now_and_then() -> None:
    looks = Looks()
    looks.look()

    looks.queues.tell()
    assert looks.queues.due_at - looks.clock() == pytest.approx(BETWEEN_LOOKS)
    looks.clock.now += 1
    looks.look()
    looks.clock.now += 1
    looks.queues.tell()
    assert looks.queues.is_due


def test_looks_that_find_nothing_and_take_long_are_rarer_but_for_the_first() -> None:
    looks = Looks()
    looks.queues.begin(0.1)
    looks.queues.absorb(Claim(NOON, ()), 9, took=9.0)
    assert looks.queues.due_at - looks.clock() == pytest.approx(0.1)

    looks.queues.begin(0.1)
    looks.queues.absorb(Claim(NOON, ()), 9, took=0.1)
    assert looks.queues.due_at - looks.clock() == pytest.approx(2)
    looks.queues.begin(0.1)
    looks.queues.absorb(Claim(NOON, ()), 9, took=9.0)
    assert looks.queues.due_at - looks.clock() == pytest.approx(LONGEST_WAIT)


def test_fifo_queues_and_others_are_asked_for_apart_each_in_the_order_of_its_turn() -> None:
    looks = Looks()
    asked = [dict(looks.queues.ask()) for _ in range(600)]

    assert all(set(each[True]) == {"a", "b"} and each[False] == ["c"] for each in asked)
    assert sum(each[True][0] == "b" for each in asked) == pytest.approx(500, abs=60)
    assert "a" in looks.queues
    assert "z" not in looks.queues
    looks.queues.serve({}, frozenset())
    assert looks.queues.ask() == []
    assert not looks.queues.is_due
