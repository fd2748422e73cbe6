"""Attack 0: each attack of kills, freezes and clocks is run against workers with a planted fault, and has to see it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from arena import Arena, arena_on
from clocks import Jumping, faketime
from freezing import Freezing, LateWrites
from kill_points import attack_points
from random_kills import Killing
from staged_kills import killed_in_a_claim, killed_in_a_rescue, lost_an_answer
from tally import tally

Attack = Callable[[Arena], list[str]]


def at_points(*names: str) -> Attack:
    return lambda arena: attack_points(arena, names)[1]


def at_random(arena: Arena) -> list[str]:
    Killing(arena, kills=4, mean_seconds=0.4, jobs=400).run()
    return arena.violations()


def frozen_in_a_rescue(arena: Arena) -> list[str]:
    return killed_in_a_rescue(arena, how="SIGSTOP")


def late_writes(arena: Arena) -> list[str]:
    return LateWrites(arena).run()


def freezes(arena: Arena) -> list[str]:
    Freezing(arena, rounds=1, jobs=320).run()
    return arena.violations()


def jumping_clocks(arena: Arena) -> list[str]:
    library = faketime()
    if library is None:
        pytest.skip("libfaketime is not here: apt-get install faketime")
    return Jumping(arena, library, arena.fleet.folder, seconds=3).run()


CASES = [
    pytest.param("A1", "early_end", at_points("before the effect"), ["G1"], id="completion before the effect"),
    pytest.param("A1", "early_end", at_random, ["G1"], id="completion before the effect, kills at random"),
    pytest.param("A1", "one_statement_rescue", killed_in_a_claim, ["G11"], id="a rescue of one statement"),
    pytest.param("A1", "no_reconcile", lost_an_answer, ["G11"], id="no reconcile"),
    pytest.param(
        "A1", "rescue_without_end", at_points("in the only attempt"), ["G7"], id="a rescue without max_attempts"
    ),
    pytest.param("A1", "keys_freed", at_random, ["G8"], id="keys until the claim, kills at random"),
    pytest.param("A1", "slots_freed", at_random, ["G9"], id="slots for everybody, kills at random"),
    pytest.param("A1", "last_in_first_out", at_random, ["G9"], id="last in, first out, kills at random"),
    pytest.param("A1", "ticks_again", at_random, ["G10"], id="ticks that are fired again, kills at random"),
    pytest.param("A1", "rescue_in_pieces", killed_in_a_rescue, ["G11"], id="a rescue in pieces"),
    pytest.param("A2", "rescue_in_pieces", frozen_in_a_rescue, ["G11"], id="a rescue in pieces, frozen"),
    pytest.param("A2", "ticks_again", freezes, ["G10"], id="ticks that are fired again, freezes"),
    pytest.param("A2", "keys_freed,last_in_first_out", freezes, ["G8", "G9"], id="keys and order, freezes"),
    pytest.param("A2", "slots_freed", freezes, ["G9"], id="slots for everybody, freezes"),
    pytest.param("A2", "no_fence", late_writes, ["G4", "G13"], id="no fence"),
    pytest.param("A2", "rescue_waits_for_locks", late_writes, ["G11"], id="a rescue without SKIP LOCKED"),
    pytest.param(
        "A2", "late_rescue,taken_from_the_living", freezes, ["G5", "G11"], id="a rescue too early, and too late"
    ),
    pytest.param("A6", "due_by_own_clock,lease_by_wall_clock", jumping_clocks, ["G6", "G11"], id="the worker's clock"),
]


@pytest.mark.parametrize(("attacker", "seed", "attack", "guarantees"), CASES)
def test_an_attack_sees_a_planted_fault(
    database_url: str, tmp_path: Path, attacker: str, seed: str, attack: Attack, guarantees: list[str]
) -> None:
    with arena_on(database_url, tmp_path, seed=seed) as arena:
        found = attack(arena)

    print(*found, sep="\n")
    assert {words.partition(":")[0] for words in found} >= set(guarantees)
    words = seed.replace("_", " ").replace(",", ", ")
    tally(f"{attacker} against: {words}", guarantees=" ".join(guarantees), caught=seed.count(",") + 1)
