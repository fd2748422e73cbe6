from __future__ import annotations

from datetime import timedelta

import pytest
from worker_values import WORKER, claimed, held_of

from jobq.store.ending import Fence
from jobq.worker.held import HeldJobs


def test_a_held_job_knows_its_fence_and_its_deadline() -> None:
    held = held_of(claimed(5, attempt=3), timeout=timedelta(seconds=30), started=100.0)

    assert held.fence == Fence(5, 3, WORKER)
    assert held.deadline == 130.0
    assert held_of(claimed()).deadline is None


def test_jobs_are_held_until_they_are_dropped() -> None:
    jobs = HeldJobs()
    one, two = held_of(claimed(1)), held_of(claimed(2))
    jobs.put(one)
    jobs.put(two)

    jobs.drop(one)
    jobs.drop(one)

    assert len(jobs) == 1
    assert jobs.ids() == [2]
    assert jobs.get(1) is None
    assert jobs.get(2) is two
    assert not jobs.has(one)


def test_a_later_attempt_takes_the_place_of_an_earlier_one_which_can_drop_nothing_more() -> None:
    jobs = HeldJobs()
    first, second = held_of(claimed(1, attempt=1)), held_of(claimed(1, attempt=2))
    jobs.put(first)
    jobs.put(second)

    jobs.drop(first)

    assert jobs.has(second)
    assert not jobs.has(first)
    assert jobs.fences(WORKER) == [Fence(1, 2, WORKER)]


def test_only_the_jobs_of_one_id_of_the_worker_are_given_back_under_it() -> None:
    jobs = HeldJobs()
    jobs.put(held_of(claimed(1, worker_id=7)))
    jobs.put(held_of(claimed(2, worker_id=8)))

    assert jobs.fences(7) == [Fence(1, 1, 7)]
    assert jobs.fences(9) == []


@pytest.mark.parametrize(
    ("timeout", "settled", "now", "is_overdue"),
    [
        (timedelta(seconds=30), False, 100.0 + 30 + 1, True),
        (timedelta(seconds=30), False, 100.0 + 30, False),
        (timedelta(seconds=30), True, 10_000.0, False),
        (None, False, 10_000.0, False),
    ],
    ids=["past it", "just not", "settled", "no timeout"],
)
def test_a_job_is_overdue_when_nothing_has_settled_it_past_its_timeout(
    timeout: timedelta | None, settled: bool, now: float, is_overdue: bool
) -> None:
    jobs = HeldJobs()
    held = held_of(claimed(), timeout=timeout, started=100.0)
    held.settled = settled
    jobs.put(held)

    assert jobs.overdue(now) == ([held] if is_overdue else [])
