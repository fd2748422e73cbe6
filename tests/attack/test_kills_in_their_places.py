"""Attack 1 where two workers have to be in their places: in a claim, in a rescue, and with an answer that is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from arena import Arena
from staged_kills import killed_in_a_claim, killed_in_a_rescue, lost_an_answer
from tally import tally


@pytest.mark.parametrize("attack", [killed_in_a_claim, killed_in_a_rescue, lost_an_answer])
def test_jobs_are_claimable_again_on_time(arena: Arena, attack: Callable[[Arena], list[str]]) -> None:
    found = attack(arena)

    words = attack.__name__.replace("_", " ")
    tally(f"A1 {words}", points=1, kills=words.count("killed"), violations=len(found))
    assert found == []
