"""When a worker asks for the leader's office, and when it renews it: by a clock that the test sets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import anyio
import pytest

from jobq.database import Database
from jobq.store import leading
from jobq.store.leading import Office
from jobq.worker import leader
from jobq.worker.leader import Election
from jobq.worker.lease import Lease
from jobq.worker.link import Link

pytestmark = pytest.mark.anyio
ME = 7


class Row:
    """The leader's row as a database would tell of it: for how long it is taken, and what was sent."""

    def __init__(self) -> None:
        self.taken_for = 0.0
        self.is_mine = False
        self.sent: list[str] = []

    async def run(self, function: Any, *_: Any) -> Any:
        self.sent.append(function.__name__)
        if function is leading.taken_for:
            return self.taken_for
        if function is leading.campaign:
            self.is_mine = self.taken_for == 0
            return Office(ME, 1) if self.is_mine else None
        return self.is_mine


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        monkeypatch.setattr(leader, "monotonic", lambda: self.now)


@pytest.fixture
def row() -> Row:
    return Row()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def election(row: Row, clock: Clock) -> Election:
    lease = Lease(timedelta(seconds=60))
    lease.begin(ME, sent_at=0)
    return Election(cast(Database, row), Link(tuple), lease, name="me", stop=anyio.Event())


async def sent(election: Election, row: Row) -> list[str]:
    """By one pass."""
    row.sent.clear()
    await election.run_once()
    return list(row.sent)


async def test_a_free_office_is_taken_and_renewed_every_4_seconds(election: Election, row: Row, clock: Clock) -> None:
    assert await sent(election, row) == ["taken_for", "campaign"]
    assert election.office == Office(ME, 1)
    for _ in range(3):
        clock.now += 3.9
        assert await sent(election, row) == []
        clock.now += 0.1
        assert await sent(election, row) == ["renew"]


@pytest.mark.parametrize(("taken_for", "pause"), [(10.0, 3.0), (3.1, 3.0), (2.0, 2.0), (0.25, 0.25)])
async def test_who_is_in_office_is_asked_for_when_its_lease_can_be_over_or_after_3_seconds(
    election: Election, row: Row, clock: Clock, taken_for: float, pause: float
) -> None:
    row.taken_for = taken_for

    assert await sent(election, row) == ["taken_for"]
    clock.now += pause - 0.01
    assert await sent(election, row) == []
    clock.now += 0.02
    assert await sent(election, row) == ["taken_for"]
    assert election.office is None


async def test_who_comes_too_late_asks_again_at_the_next_look(election: Election, row: Row, clock: Clock) -> None:
    run = row.run

    async def another_was_quicker(function: Any, *arguments: Any) -> Any:
        row.taken_for = 10.0 if function is leading.campaign else row.taken_for
        return await run(function, *arguments)

    row.run = another_was_quicker  # type: ignore[method-assign]
    assert await sent(election, row) == ["taken_for", "campaign"]
    clock.now += 1

    assert await sent(election, row) == ["taken_for"]
    assert election.office is None


async def test_a_leader_that_was_deposed_asks_at_the_next_look(election: Election, row: Row, clock: Clock) -> None:
    await election.run_once()
    row.is_mine, row.taken_for = False, 10.0
    clock.now += 4

    assert await sent(election, row) == ["renew"]
    assert election.office is None
    clock.now += 1
    assert await sent(election, row) == ["taken_for"]


async def test_a_worker_without_an_id_asks_for_nothing(row: Row, clock: Clock) -> None:
    election = Election(cast(Database, row), Link(tuple), Lease(timedelta(seconds=60)), name="me", stop=anyio.Event())

    assert await sent(election, row) == []
