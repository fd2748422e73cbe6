"""Attack 1 at random: SIGKILL of workers under load, whatever they are doing."""

from __future__ import annotations

import pytest
from arena import Arena
from audited import history
from lengths import length
from random_kills import Killing
from tally import tally

KILLS = length(ci=30, chaos=100, long=1_000)
JOBS = length(ci=3_000, chaos=20_000, long=1_000_000)
MEAN_SECONDS = length(ci=0.4, chaos=1.0, long=3.0)


@pytest.mark.timeout(60 + KILLS * MEAN_SECONDS * 3 + JOBS / 100)
def test_workers_killed_at_random_under_load_cost_no_guarantee(arena: Arena) -> None:
    jobs = Killing(arena, KILLS, MEAN_SECONDS, JOBS).run()
    found = arena.violations()

    rescued = arena.count("rescued")
    counts = {"kills": KILLS, "jobs": len(jobs), "jobs with keys": arena.keyed(), "ticks": arena.ticks()}
    counts["rescues"] = rescued
    tally("A1 random kills", guarantees="G1 G3 G5 G7 G8 G9 G10 G11", violations=len(found), **counts)
    print(history(arena.board))
    assert found == []
    assert rescued >= KILLS, "the kills met nothing"
    assert arena.keyed() >= KILLS, "nobody fought for the keys"
    assert arena.ticks() >= KILLS * MEAN_SECONDS / 2, "the schedule stood still"
    assert len(jobs) >= JOBS * 0.99  # not all: a wave is of whole jobs of each kind
