"""The protocol searched whole: every guarantee holds in every state, and each broken twin is caught.

`tests/attack/model/` says which statement each step is. The bounds are those of faults and of an operator's acts; how
often a job is claimed has none, since attempts only grow.
"""

from __future__ import annotations

import dataclasses

import pytest
from lengths import length
from model.rules import Rules
from model.search import search
from model.state import World, start
from tally import tally

JOBQ = Rules()
AT_ONCE = Rules(looks_again_by_time=False)  # without the look everywhere that the leader takes every 5 minutes
# workers, jobs, faults, acts of an operator
CI = [(2, 2, 1, 1), (3, 1, 2, 1)]
CHAOS = [*CI, (2, 1, 2, 2), (3, 2, 1, 0), (3, 2, 1, 1), (3, 2, 2, 0)]
LONG = [*CHAOS, (3, 2, 2, 1)]


@pytest.mark.timeout(0 if length(ci=False, chaos=True, long=True) else 120)
@pytest.mark.parametrize("bounds", length(ci=CI, chaos=CHAOS, long=LONG), ids=str)
def test_no_guarantee_is_broken_in_any_state(bounds: tuple[int, int, int, int]) -> None:
    workers, jobs, faults, hands = bounds

    found = search(start(workers, jobs, faults=faults, hands=hands), JOBQ)

    assert found.guarantee is None, str(found)
    name = f"A7 model, {workers} workers, {jobs} jobs, {faults} faults, {hands} by hand"
    tally(name, states=found.states, transitions=found.transitions, violations=0)


def small(*, workers: int = 2, jobs: int = 1, faults: int = 0, hands: int = 0) -> World:
    return start(workers, jobs, faults=faults, hands=hands)


def broken(rules: Rules = JOBQ, **changes: bool) -> Rules:
    return dataclasses.replace(rules, **changes)


NO_WORKER = {"fence_on_worker": False, "fence_on_some_worker": False}
TWINS = {
    "no fence at all": ("G3", broken(**NO_WORKER, fence_on_attempt=False), small(faults=1)),
    "a fence without the worker": ("G3", broken(**NO_WORKER), small(faults=1)),
    "a fence that asks whether any worker has the job, after a crash with relaxed commits": (
        "G4",
        broken(fence_on_worker=False, relaxed=True, new_id_after_a_crash=True),
        small(faults=1),
    ),
    "a fence without the attempt": ("G4", broken(fence_on_attempt=False), small(hands=2)),
    "an attempt that does not grow": ("G4", broken(attempt_grows=False), small(hands=2)),
    "a retry by hand that begins with attempt 1": ("G4", broken(retry_keeps_attempt=False), small(hands=2)),
    "a claim of what is not due": ("G6", broken(claim_of_due_jobs_only=False), small()),
    "a claim that does not lock the worker's row": (
        "G11",
        broken(AT_ONCE, claim_locks_the_workers_row=False),
        small(faults=1, hands=1),
    ),
    "a rescue in one statement": ("G11", broken(AT_ONCE, rescue_in_statements=False), small(faults=2)),
    "a rescue that ignores max_attempts": ("G7", broken(rescue_buries_the_spent=False), small(faults=2)),
    "a rescue that waits for locked jobs": ("G11", broken(rescue_skips_locked=False), small(jobs=2, faults=1)),
    "a rescue that does not look again": ("G11", broken(AT_ONCE, rescue_looks_again=False), small(faults=1)),
    "no reconcile": ("G11", broken(reconciles=False), small(faults=1)),
    "a worker that leaves after one reconcile with what it knows": (
        "G11",
        broken(AT_ONCE, leaves_nothing_while_unsure=False),
        small(faults=1, hands=1),
    ),
    "one reconcile alone": ("G11", broken(reconciles_again=False), small(faults=1)),
    "an end that is recorded before the work is committed": ("G1", broken(end_after_work=False), small(faults=1)),
    "relaxed commits": ("G4", broken(relaxed=True), small(faults=1)),
    "relaxed commits, and no reconcile after a crash": (
        "G11",
        broken(relaxed=True, unsure_after_a_crash=False),
        small(faults=1),
    ),
}


@pytest.mark.parametrize("twin", TWINS)
def test_a_broken_twin_is_caught(twin: str) -> None:
    guarantee, rules, world = TWINS[twin]

    found = search(world, rules)

    print(f"{twin}: {found}")
    assert found.guarantee == guarantee
    assert found.trace
    tally(f"A7 twin: {twin}", guarantees=guarantee, caught=1, states=found.states)


def test_relaxed_commits_would_want_a_new_id_after_each_crash() -> None:
    found = search(small(faults=1), broken(relaxed=True, new_id_after_a_crash=True))

    assert found.guarantee is None, str(found)


# What the model has found in jobq itself: one is bounded by the leader's look everywhere, the other is mended.


def test_a_rescuer_that_leaves_takes_along_what_it_had_to_step_over() -> None:
    found = search(small(workers=3, faults=1, hands=1), AT_ONCE)

    assert found.guarantee == "G11", "the look every 5 minutes is no longer needed for this"


def test_a_reconcile_by_ids_would_spare_a_later_claim_of_what_still_runs() -> None:
    world = small(workers=1, faults=1, hands=2)

    assert search(world, broken(handlers_stop=False)).guarantee is None
    assert search(world, broken(handlers_stop=False, reconciles_by_attempt=False)).guarantee == "G11"
