"""Attack 2: SIGSTOP past the lease, then SIGCONT."""

from __future__ import annotations

import pytest
from arena import Arena
from audited import history
from fleet import until
from freezing import Freezing, LateWrites, refused
from lengths import length
from staged_kills import killed_in_a_rescue
from tally import tally

ROUNDS = length(ci=4, chaos=20, long=500)


def test_every_late_write_is_refused_and_counted_and_the_dead_are_rescued_meanwhile(arena: Arena) -> None:
    attack = LateWrites(arena)
    found = attack.run()

    until(lambda: all(sum(each) for each in attack.counted()), "a count of each late write")  # it may be on its way
    counted = attack.counted()
    refused = sum(number for number, _ in counted)
    tally("A2 late writes", frozen=5, kills=1, refused=refused, violations=len(found))
    assert found == []
    assert counted[:2] == [(1, 0), (1, 0)]
    assert [sum(each) for each in counted] == [1, 1, 1, 1]
    assert attack.said() == [number for number, _ in counted]


def test_a_worker_that_stands_still_in_a_rescue_holds_up_nobody(arena: Arena) -> None:
    found = killed_in_a_rescue(arena, how="SIGSTOP")

    tally("A2 frozen in a rescue", frozen=1, kills=1, violations=len(found))
    assert found == []


@pytest.mark.timeout(60 + ROUNDS * 20)
def test_workers_frozen_under_load_cost_no_guarantee(arena: Arena) -> None:
    attack = Freezing(arena, ROUNDS, jobs=ROUNDS * 320)
    members = attack.run()
    found = arena.violations()

    late = refused(members)
    counts = {"frozen": 2 * ROUNDS, "jobs with keys": arena.keyed(), "ticks": arena.ticks()}
    counts |= {"rescues": arena.count("rescued"), "refused": late}
    tally("A2 freezes", guarantees="G3 G4 G5 G8 G9 G10 G11 G13", violations=len(found), **counts)
    print(f"{history(arena.board)}; {attack.worn_out} workers ended, with threads that did not stop in time")
    assert found == []
    assert arena.count("rescued") >= ROUNDS, "the freezes met nothing"
    assert arena.keyed() >= ROUNDS, "nobody fought for the keys"
    assert arena.ticks() >= ROUNDS, "the schedule stood still"
    assert late >= 1, "no write came late"
