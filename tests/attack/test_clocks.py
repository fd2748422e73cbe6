"""Attack 6: a worker's wall clock is an hour off, or jumps."""

from __future__ import annotations

from pathlib import Path

import pytest
from arena import Arena
from clocks import HOUR, Jumping, faketime, widest_clocks
from lengths import length
from tally import tally

SECONDS = length(ci=6, chaos=60, long=1_800)


@pytest.fixture
def library() -> Path:
    found = faketime()
    if found is None:
        pytest.skip("libfaketime is not here: apt-get install faketime")
    return found


@pytest.mark.timeout(90 + SECONDS * 3)
def test_no_job_runs_early_and_no_lease_is_lost_by_a_clock_that_is_wrong_or_jumps(
    arena: Arena, library: Path, tmp_path: Path
) -> None:
    attack = Jumping(arena, library, tmp_path, SECONDS)
    found = attack.run()

    least, most = widest_clocks(arena)
    tally("A6 clocks", clocks=3, jumps=attack.jumps, jobs=len(attack.jobs), violations=len(found))
    assert found == []
    assert least < -0.9 * HOUR, "no clock was behind"
    assert most > 0.9 * HOUR, "no clock was ahead"
