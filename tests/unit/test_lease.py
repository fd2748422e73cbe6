from __future__ import annotations

from datetime import timedelta

import anyio
import pytest
from worker_values import Clock

from jobq.worker.guard import Guard
from jobq.worker.lease import Lease, new_worker_id

LENGTH = timedelta(seconds=60)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lease(clock: Clock) -> Lease:
    return Lease(LENGTH, clock)


def test_ids_are_positive_63_bit_numbers_and_not_used_twice() -> None:
    ids = [new_worker_id() for _ in range(1_000)]

    assert all(0 < each < 2**63 for each in ids)
    assert len(set(ids)) == len(ids)


def test_a_worker_without_an_id_has_no_lease_to_lose(lease: Lease, clock: Clock) -> None:
    clock.now += 10**6

    assert lease.worker_id is None
    assert not lease.has_run_out


@pytest.mark.parametrize(("passed", "has_run_out"), [(0, False), (59.9, False), (60, True), (3_600, True)])
def test_a_lease_counts_from_when_the_last_good_beat_was_sent(
    lease: Lease, clock: Clock, passed: float, has_run_out: bool
) -> None:
    lease.begin(7, sent_at=clock.now)

    clock.now += passed

    assert lease.has_run_out is has_run_out


def test_a_beat_extends_the_lease_by_when_it_was_sent_and_not_by_when_it_was_answered(
    lease: Lease, clock: Clock
) -> None:
    lease.begin(7, sent_at=clock.now)
    sent_at = clock.now + 10
    clock.now += 40
    lease.extend(7, sent_at=sent_at)

    clock.now = sent_at + 59
    assert not lease.has_run_out
    clock.now = sent_at + 60
    assert lease.has_run_out


def test_a_late_answer_to_a_beat_of_an_old_id_extends_nothing(lease: Lease, clock: Clock) -> None:
    lease.begin(7, sent_at=clock.now)
    lease.end()
    lease.begin(8, sent_at=clock.now)

    lease.extend(7, sent_at=clock.now + 50)
    clock.now += 60

    assert lease.has_run_out


def test_a_lease_that_was_given_up_has_no_id(lease: Lease, clock: Clock) -> None:
    lease.begin(7, sent_at=clock.now)
    lease.end()
    clock.now += 3_600

    assert lease.worker_id is None
    assert not lease.has_run_out


@pytest.mark.anyio
async def test_the_guard_tells_when_no_beat_has_succeeded_for_a_lease(lease: Lease, clock: Clock) -> None:
    lost: list[tuple[int, str]] = []
    guard = Guard(lease, lost=lambda worker_id, reason: lost.append((worker_id, reason)), stop=anyio.Event())
    await guard.run_once()
    lease.begin(7, sent_at=clock.now)
    await guard.run_once()

    clock.now += 60
    await guard.run_once()

    assert lost == [(7, "no beat has succeeded for 0:01:00")]
