"""The guarantees of DESIGN.md: each has its checks (tests/attack/guarantees.py) and its tests; all are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
DESIGN = (TESTS.parent / "DESIGN.md").read_text()
SECTION = "Guarantees"
# The names of functions in tests/attack/guarantees.py, then those of tests.
GUARANTEES = {
    "G1": (
        "lost vanished",
        "test_a_rollback_leaves_nothing test_f26_jobs_of_a_worker_whose_lease_ran_out_are_rescued"
        " test_five_thousand_jobs_survive_a_fleet_whose_workers_are_killed_every_two_seconds"
        " test_a1_a_claim_whose_answer_is_lost_costs_its_jobs_nothing",
    ),
    "G2": ("ghosts", "test_a_rollback_leaves_nothing test_f51_a_savepoints_rollback_drops_its_job_only"),
    "G3": (
        "ended_and_open ended_twice",
        "test_two_ends_of_one_job_leave_one test_an_end_whose_answer_was_lost_is_written_once_and_counted_once"
        " test_f25_a_job_that_another_worker_has_ended_stays_as_that_one_left_it",
    ),
    "G4": (
        "stale_ends",
        "test_f25_the_fence_refuses_each_write_of_a_worker_that_lost_the_job test_f25_the_fence_guards_the_slot_too"
        " test_every_late_write_is_refused_and_counted_and_the_dead_are_rescued_meanwhile",
    ),
    "G5": (
        "overlaps",
        "test_kills_at_any_moment_cost_each_job_no_more_than_its_rescues"
        " test_a4_nobody_is_declared_dead_within_a_lease_of_the_rescuers_own_return",
    ),
    "G6": (
        "early",
        "test_a_failed_job_waits_for_its_delay_by_the_databases_clock"
        " test_a_delay_counts_by_the_clock_of_the_database"
        " test_f38_a_host_whose_clock_is_an_hour_off_works_as_any_other",
    ),
    "G7": (
        "too_many_failures",
        "test_a_job_out_of_attempts_is_dead_with_its_whole_history"
        " test_f14_a_job_that_kills_its_worker_starts_as_often_as_it_may_and_then_is_dead",
    ),
    "G8": (
        "shared_keys",
        "test_of_ten_threads_at_once_one_creates_the_job test_f10_a_running_job_holds_its_key_against_ten_threads",
    ),
    "G9": (
        "over_the_limit ran_over_the_limit out_of_order",
        "test_order_and_limits_hold_whatever_happens test_forty_fifo_queues_keep_their_order_while_workers_are_killed",
    ),
    "G10": (
        "ticks_twice",
        "test_f41_two_workers_fire_each_tick_once test_f41_two_workers_stopped_and_woken_settle_each_tick_once",
    ),
    "G11": (
        "orphans",
        "test_f26_jobs_of_a_worker_whose_lease_ran_out_are_rescued"
        " test_a2_a_worker_frozen_before_its_commit_does_not_keep_others_from_being_rescued",
    ),
    "G12": (
        "cleaned_too_early",
        "test_what_has_been_kept_for_its_time_is_deleted_and_nothing_else"
        " test_the_leader_deletes_what_has_been_kept_for_its_time_after_it_was_summed",
    ),
    "G13": (
        "halves",
        "test_the_work_and_the_completion_commit_together test_a_job_taken_meanwhile_takes_the_work_back"
        " test_a_worker_that_dies_inside_of_transaction_leaves_nothing_of_its_work",
    ),
}
TOGETHER = {"at_any_time", "by_the_journal"}  # ask several


@cache
def functions_of(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@cache
def names_of_tests() -> frozenset[str]:
    return frozenset(name for path in TESTS.rglob("test_*.py") for name in functions_of(path))


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_guarantee_has_the_tests_and_the_checks_that_it_names(guarantee: str) -> None:
    checks, named = GUARANTEES[guarantee]

    assert set(named.split()) - names_of_tests() == set()
    assert set(checks.split()) - functions_of(TESTS / "attack" / "guarantees.py") == set()


def test_every_check_belongs_to_a_guarantee() -> None:
    checks = {name for name in functions_of(TESTS / "attack" / "guarantees.py") if not name.startswith("_")}
    inner = {"lacks_a_live"}

    assert {name for named, _ in GUARANTEES.values() for name in named.split()} == checks - TOGETHER - inner


def section() -> str:
    """What DESIGN.md says under the heading."""
    parts = re.split(r"^## (.+)$", DESIGN, flags=re.MULTILINE)
    return next((text for title, text in zip(parts[1::2], parts[2::2], strict=True) if SECTION in title), "")


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_the_design_names_the_same_tests_and_checks(guarantee: str) -> None:
    checks, named = GUARANTEES[guarantee]
    (row,) = [line for line in section().splitlines() if line.startswith(f"| {guarantee} |")]

    assert set(re.findall(r"`(test_\w+)`", row)) == set(named.split())
    assert set(checks.split()) <= set(re.findall(r"`(\w+)`", row))
