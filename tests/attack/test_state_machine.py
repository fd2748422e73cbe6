"""Attacker 9: random histories of enqueues, runs, failures, repairs and time, compared with a reference after each."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import pytest
import sqlalchemy as sa
from histories import World, application
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from lengths import length
from machine import Machine
from planted import PLANTED, keys_that_are_looked_up, planted
from reference import QUEUES
from tally import tally

SECONDS = length(ci=0.0, chaos=120.0, long=2 * 3600.0)
ROUNDS = 2  # at least
ROUND = settings(
    max_examples=20, stateful_step_count=60, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
UNSHRUNK = settings(ROUND, max_examples=500, phases=(Phase.generate,))
# What the histories have to have come to, or they have shown nothing of it.
SEEN = [
    *["insert", "ignore", "raise", "replace", "reschedule", "two at once"],
    *[f"claim in {queue}" for queue in QUEUES],
    *["done", "fail", "permanent", "snooze", "pause", "late write", "rescue", "clean"],
    *["rolled back", "retry None", "retry NotEndedError", "cancel None", "cancel NotPendingError"],
]


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    engine = sa.create_engine(database_url)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as look:
        yield World(engine, application(), look)
    engine.dispose()


@pytest.mark.timeout(SECONDS + 240)
def test_jobq_does_what_the_reference_says_in_every_history(world: World) -> None:
    machine = type("Played", (Machine,), {"world": world})
    rounds, end = 0, monotonic() + SECONDS
    while rounds < ROUNDS or monotonic() < end:
        run_state_machine_as_test(machine, settings=ROUND)
        rounds += 1

    print(dict(world.seen))
    assert SECONDS == 0 or not [what for what in SEEN if not world.seen[what]]
    tally("A9 histories", examples=rounds * ROUND.max_examples, steps=world.rules, violations=0)


@pytest.mark.parametrize("fault", PLANTED)
def test_the_reference_sees_the_fault(world: World, fault: str) -> None:
    without: dict[str, object] = {"world": world}
    if PLANTED[fault] is keys_that_are_looked_up:  # its bulk form would need another text
        without["_enqueue_many"] = lambda *_: None
    machine = type("Played", (Machine,), without)

    with planted(PLANTED[fault], world.engine), pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=UNSHRUNK)

    tally("A9 seeded faults", caught=1, steps=world.rules)
