"""Jobs that wait for a slot of the worker, and how many there may be."""

from __future__ import annotations

from typing import Any

import pytest
from worker_values import claimed, held_of

from jobq.worker.buffer import Buffer
from jobq.worker.held import Held
from jobq.worker.pace import MOST_AHEAD, Pace


def put(buffer: Buffer, id_: int, *, started: float = 1_000.0, **values: Any) -> Held:
    held = held_of(claimed(id_, **values), started=started)
    buffer.put(held)
    return held


def ids(buffer: Buffer) -> list[int]:
    """In the order in which they would start."""
    taken = []
    while (held := buffer.take()) is not None:
        taken.append(held.job.id)
    return taken


def test_jobs_start_by_priority_and_then_in_the_order_of_the_claims() -> None:
    buffer = Buffer()
    for id_, priority in enumerate([1, 3, 1, 0, 2, 0]):
        put(buffer, id_, priority=priority)

    assert len(buffer) == 6
    assert ids(buffer) == [3, 5, 0, 2, 4, 1]
    assert len(buffer) == 0


def test_a_job_with_a_slot_of_its_queue_goes_before_others_of_its_priority() -> None:
    buffer = Buffer()
    put(buffer, 1)
    put(buffer, 2, slot=1)
    put(buffer, 3, priority=0)
    put(buffer, 4, slot=2)

    assert ids(buffer) == [3, 2, 4, 1]


def test_what_is_removed_does_not_start() -> None:
    buffer = Buffer()
    for id_, queue in enumerate(["a", "b", "a", "c"]):
        put(buffer, id_, queue=queue)

    removed = buffer.remove(lambda held: held.job.queue == "a")

    assert [held.job.id for held in removed] == [0, 2]
    assert len(buffer) == 2
    assert ids(buffer) == [1, 3]


def test_it_knows_who_has_waited_longest_and_who_would_start_last() -> None:
    buffer = Buffer()
    assert (buffer.oldest, buffer.last_priority) == (None, None)
    put(buffer, 1, priority=2, started=7.0)
    put(buffer, 2, priority=0, started=3.0)

    assert (buffer.oldest, buffer.last_priority) == (3.0, 2)


def test_nothing_is_claimed_ahead_until_jobs_have_shown_to_be_quick() -> None:
    pace = Pace()
    assert pace.ahead(20) == 0
    for _ in range(100):
        pace.ended(0.001)
    assert pace.ahead(20) == pytest.approx(400, rel=0.1)  # 20 ms of work: 20 slots, a job a millisecond each


def test_slow_jobs_are_not_claimed_ahead() -> None:
    pace = Pace()
    for _ in range(200):
        pace.ended(0.021)
    assert pace.ahead(10_000) == 0


def test_one_slow_job_among_quick_ones_ends_claiming_ahead_for_a_while() -> None:
    pace = Pace()
    for _ in range(200):
        pace.ended(0.0001)
    assert pace.ahead(20) == MOST_AHEAD
    pace.ended(1.0)
    assert pace.ahead(20) == 0
    for _ in range(40):
        pace.ended(0.0001)
    assert pace.ahead(20) > 0


def test_after_jobs_that_did_not_get_to_start_jobs_have_to_show_again_that_they_are_quick() -> None:
    pace = Pace()
    for _ in range(200):
        pace.ended(0.0001)
    pace.forget()
    assert pace.ahead(20) == 0
