"""Attack 6: the server's wall clock is set forward, beyond every lease, while workers are well."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from arena import Arena, arena_on
from clocks import HOUR, Clock, faketime
from fleet import AT_WORK, Member, until, wait_out
from places import FAST
from tally import tally

import jobq
from jobq import embedded
from jobq.embedded import launch

LEASE_SECONDS = 3.0
AGAIN = "SELECT count(*) FROM runs WHERE job_id = ANY(:ids) AND attempt = 2 AND what = 'began'"
SET = "the server's clock was set forward by 5"  # 59m 59s and something: less what an answer may have taken


@pytest.fixture
def clock(own_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """That of the server that starts in the test's own folder."""
    if (library := faketime()) is None:
        pytest.skip("libfaketime is not here: apt-get install faketime")
    clock = Clock(library, own_directory / "server.clock")
    clock.set(0.0)
    monkeypatch.setattr(launch, "ENVIRONMENT", {**launch.ENVIRONMENT, **clock.environment()})
    return clock


@pytest.fixture
def timed(clock: Clock, own_directory: Path, tmp_path: Path) -> Iterator[Arena]:
    url = embedded.ensure(own_directory, tcp=True, settings=FAST)
    jobq.migrate(url)
    with arena_on(url, tmp_path) as arena:
        yield arena


def at_work(arena: Arena, members: list[Member], leases: float = 2.5) -> list[int]:
    """Jobs of theirs that run for so many leases from now."""
    for member in members:
        member.until_said(AT_WORK)
    wait_out(LEASE_SECONDS)  # a rescuer compares with its last look: one that starts right after the step cannot tell
    running = arena.enqueue("work", 10, seconds=leases * LEASE_SECONDS)
    arena.until_begun(running)
    return running


@pytest.mark.timeout(180)
def test_nobody_is_declared_dead_by_a_server_whose_clock_is_set_forward(timed: Arena, clock: Clock) -> None:
    members = [timed.start(lease=LEASE_SECONDS) for _ in range(2)]
    running = at_work(timed, members)

    clock.set(HOUR)
    for member in members:
        member.until_said(SET)
    has_ended = timed.all_end(running)
    last = timed.enqueue("work", 4, seconds=4 * LEASE_SECONDS)
    timed.until_begun(last)
    timed.kill(members[0])
    is_rescued = timed.all_end(last)

    attempts = {row.attempt for row in timed.board.ended(running)}
    lost = sum(member.count("lease lost") for member in members)
    tally("A6 the server's clock", jumps=1, jobs=14, violations=lost + len(attempts - {1}))
    assert (has_ended, attempts, lost) == (True, {1}, 0)
    assert is_rescued, "one that is killed afterwards is lost as any other"
    assert timed.violations() == []


@pytest.mark.timeout(180)
def test_the_attack_finds_a_rescuer_that_trusts_the_servers_clock(timed: Arena, clock: Clock) -> None:
    timed.seed = "trust_in_the_servers_clock"
    running = at_work(timed, [timed.start(lease=LEASE_SECONDS) for _ in range(2)], leases=20)
    steps = count(1)

    def is_taken_away() -> bool:
        """A rescuer has to look between the step and the next beat of the other: about every second time it does."""
        clock.set(next(steps) * HOUR)
        wait_out(1.0)
        return bool(timed.board.one(AGAIN, ids=running))

    until(is_taken_away, "a second attempt")
    found = timed.violations()

    tally("A6 against: trust in the server's clock", guarantees="G5", caught=1)
    assert "G5" in {words.partition(":")[0] for words in found}
