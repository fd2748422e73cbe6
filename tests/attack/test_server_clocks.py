"""Attack 6: the server's wall clock is set forward, beyond every lease, while workers are well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from arena import Arena, arena_on
from clocks import HOUR, Clock, faketime
from fleet import AT_WORK, wait_out
from places import FAST
from tally import tally

import jobq
from jobq import embedded
from jobq.embedded import launch

LEASE_SECONDS = 3.0
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


@pytest.mark.timeout(180)
def test_nobody_is_declared_dead_by_a_server_whose_clock_is_set_forward(timed: Arena, clock: Clock) -> None:
    members = [timed.start(lease=LEASE_SECONDS) for _ in range(2)]
    for member in members:
        member.until_said(AT_WORK)
    wait_out(LEASE_SECONDS)  # a rescuer compares with its last look: one that starts right after the step cannot tell
    running = timed.enqueue("work", 10, seconds=2.5 * LEASE_SECONDS)
    timed.until_begun(running)

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
