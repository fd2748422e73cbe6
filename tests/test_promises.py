"""What jobq promises, each with its tests: what other systems do. The faults that break queues are in tests/faults/.

A requirement names its tests, or says why there is none. Numbers are those of the project's list: S storage, E enqueue,
C claim and crash, F failure, Q queues, P periodic, O operating, T testing, X where systems disagree.
"""

from __future__ import annotations

import re

import pytest
from named_tests import names

DESIGN = "DESIGN.md "
REQUIREMENTS = {
    # storage
    "S1": "test_the_checks_are_those_of_the_tables test_a_job_is_stored_as_handler_and_arguments_say",
    "S2": "test_the_view_has_the_columns_and_types_that_the_library_reads test_options_are_stored",
    "S3": "test_no_index_of_jobs_names_what_a_claim_writes"
    " test_f23_a_claim_on_the_workers_own_connection_is_read_committed"
    "_goes_by_the_index_and_is_not_compiled",
    "S4": "test_f08_an_ended_job_holds_no_key test_the_indexes_are_these_and_no_others",
    "S5": "test_f12_equal_content_is_one_key_whatever_its_order test_named_arguments_alone_make_the_key",
    "S6": "test_f54_eight_processes_migrate_at_once test_migrate_says_what_was_there_and_what_is",
    "S7": DESIGN + "15 Dependencies",
    "S8": DESIGN + "8 The worker: a pool of 4 and two connections more, however many queues there are",
    # enqueue
    "E1": "test_a_rollback_leaves_nothing test_a_held_key_gives_the_holders_id",
    "E2": DESIGN
    + "4 Enqueue: an Engine is refused, `with engine.begin()` is the way without a transaction of one's own",
    "E3": "test_f51_nobody_sees_the_job_or_hears_of_it_before_the_commit test_a_rollback_leaves_nothing",
    "E4": "test_options_are_stored test_a_delay_counts_by_the_clock_of_the_database",
    "E5": "test_a_held_key_gives_the_holders_id test_raise_says_who_holds_the_key"
    " test_a_waiting_job_becomes_what_the_call_says test_a_debounced_job_waits_no_longer_than_max_wait",
    "E6": "test_the_callsite_is_that_of_the_call_however_it_is_awaited test_callsites_can_be_switched_off",
    "E7": "test_one_and_many_derive_the_same_keys test_only_the_transitions_of_the_table_happen"
    " test_a_row_is_the_one_that_python_enqueues",
    "E8": "test_each_row_is_a_job_as_handler_and_labels_say test_run_at_and_priority_may_be_the_rows_own",
    "E9": "test_a_job_enqueued_inside_belongs_to_the_transaction test_the_work_and_the_completion_commit_together",
    "E10": "test_f12_only_arguments_that_were_passed_count",
    "E11": "test_f07_args_that_no_longer_fit_end_the_job_and_stay_as_they_are",
    "E12": "test_of_ten_threads_at_once_one_creates_the_job test_f10_a_running_job_holds_its_key_against_ten_threads",
    # claim, lease, crash
    "C1": "test_a_due_job_is_claimed_and_becomes_the_workers test_two_claims_at_once_get_different_jobs",
    "C2": "test_a_claim_takes_no_more_than_asked_for_in_all_and_of_each_lane",
    "C3": "test_waiting_counts_from_the_later_of_run_at_and_created_at test_a_claim_of_nothing_still_tells_the_time",
    "C4": "test_f26_jobs_of_a_worker_whose_lease_ran_out_are_rescued",
    "C5": "test_a_beat_extends_the_lease_of_this_worker_alone",
    "C6": "test_f25_the_fence_refuses_each_write_of_a_worker_that_lost_the_job"
    " test_f25_a_job_that_another_worker_has_ended_stays_as_that_one_left_it",
    "C7": "test_f26_an_orphan_whose_workers_row_is_gone_is_found_by_the_next_worker",
    "C8": "test_f26_jobs_of_a_worker_whose_row_is_gone_are_found_by_looking_everywhere",
    "C9": "test_a_job_that_may_not_be_interrupted_is_dead_with_attempts_left",
    "C10": "test_an_end_whose_answer_was_lost_is_written_once_and_counted_once test_two_ends_of_one_job_leave_one",
    "C11": "test_f42_an_outage_is_said_once_and_its_end_once",
    "C12": "test_an_end_is_written_once_the_database_can_be_written_to_again",
    "C13": DESIGN + "21: at least once; and `transaction()` in 7",
    "C14": "test_five_thousand_jobs_survive_a_fleet_whose_workers_are_killed_every_two_seconds",
    # failure and outcomes
    "F1": "test_a_job_out_of_attempts_is_dead_with_its_whole_history test_the_backoff_grows_with_the_failures",
    "F2": "test_f16_delays_spread_between_half_the_step_and_the_step",
    "F3": "test_permanent_ends_the_job_at_once test_the_step_doubles_from_the_base_up_to_the_cap",
    "F4": "test_f18_a_dead_job_retried_by_hand_runs_again_and_keeps_its_history",
    "F5": "test_show_tells_the_whole_story",
    "F6": "test_what_a_handler_returns_is_its_outcome",
    "F7": "test_what_a_handler_returns_ends_its_job_as_done",
    "F8": "test_a_stored_outcome_is_read_back_as_one_of_four_words test_python_and_sql_read_the_same_word_in_any_text",
    "F9": "test_f33_any_base_exception_is_one_failure_and_the_neighbour_lives",
    "F10": "test_on_error_does_not_hear_of_snoozes_and_shutdowns test_on_error_hears_of_each_failed_attempt_once",
    "F11": "test_one_run_of_failures_of_all_services_is_said_once_and_its_end_once"
    " test_the_next_success_arms_the_word_again",
    "F12": "test_an_http_status_pauses_the_queue_and_the_job_runs_later"
    " test_a9_twenty_handlers_that_pause_at_once_are_one_pause_and_one_event",
    "F13": "test_f72_a_kind_without_a_handler_waits_and_holds_nobody_up",
    # queues, pacing, schedules
    "Q1": "test_f22_over_ten_thousand_jobs_with_all_queues_full_each_has_its_share test_every_queue_comes_once",
    "Q2": "test_forty_fifo_queues_keep_their_order_while_workers_are_killed"
    " test_forty_fifo_queues_share_one_worker_and_its_few_connections",
    "Q3": "test_a_worker_told_its_queues_leaves_the_others_alone",
    "Q4": "test_the_throttle_is_told_how_each_job_ended test_a_broken_throttle_is_reported_and_loses_no_job",
    "Q5": "test_a_job_and_its_wait_take_its_share_of_the_minute_or_as_long_as_the_job"
    " test_a_backoff_replaces_the_share_for_outcomes_that_begin_so",
    "Q6": "test_the_lifespan_is_open_while_handlers_run_and_gives_them_its_state",
    "Q7": "test_an_app_has_the_handlers_of_the_registries_it_includes_also_later_ones",
    "Q8": "test_a_handler_carries_what_its_registration_says",
    "Q9": "test_a_full_worker_takes_the_next_job_as_soon_as_one_has_ended",
    "Q10": "test_without_a_listener_the_poll_finds_the_jobs"
    " test_f47_what_is_enqueued_while_nobody_listens_is_found_on_the_way_back",
    "Q11": "test_f49_any_queue_name_that_is_allowed_wakes_the_worker",
    "Q12": "test_a_burst_that_was_told_of_once_is_found_whole",
    "P1": "test_decorators_above_a_handler_leave_it_as_it_is test_a_call_gives_a_schedule_args_and_options"
    " test_a_span_is_not_pushed_away_by_restarts",
    "P2": "test_a_predicates_minutes_are_fired",
    "P3": "test_a_tick_is_skipped_while_the_copy_before_runs"
    " test_a_failing_schedule_is_reported_once_and_the_others_go_on",
    "P4": "test_f41_two_workers_fire_each_tick_once test_a8_both_schedules_fire",
    "P5": "test_f40_step_and_day_rules test_f39_some_switches_by_hand",
    # operating
    "O1": "test_stats_show_queues_and_what_keeps_jobs_waiting test_f64_stats_of_nothing_are_zeros"
    " test_no_count_reads_a_whole_table",
    "O2": "test_list_chooses_by_state_queue_and_kind test_jobs_are_chosen_by_an_argument"
    " test_jobs_are_chosen_by_their_age_since_the_end_or_else_the_enqueue"
    " test_jobs_are_chosen_by_their_last_error_or_outcome",
    "O3": "test_show_tells_the_whole_story"
    " test_show_says_what_a_waiting_job_waits_for_and_what_became_of_its_attempts"
    " test_removing_the_named_cause_again_and_again_ends_with_a_job_that_would_run",
    "O4": "test_f18_a_dead_job_is_retried_and_a_pending_one_is_not test_repairs_take_the_same_filters"
    " test_ended_jobs_are_retried_by_what_the_callers_tables_say",
    "O5": "test_f28_a_waiting_job_is_cancelled_for_good"
    " test_waiting_jobs_are_cancelled_by_an_exists_about_each_of_them",
    "O6": "test_a_worker_runs_once_at_a_time_and_keeps_its_numbers"
    " test_gauges_of_the_queues_are_read_from_the_database test_ends_are_counted_by_queue_kind_and_outcome"
    " test_stats_fail_when_a_due_job_is_older_than_asked_and_name_its_queue",
    "O7": "test_durations_are_those_of_the_last_attempts_of_this_hour_and_the_one_before"
    " test_what_has_ended_is_counted_by_queue_and_by_state test_stats_are_the_same_before_and_after_summing",
    "O8": "test_the_oldest_age_looks_at_all_priorities_and_not_at_running_jobs",
    "O9": "test_the_fields_of_a_line_are_there_for_machines test_every_line_of_the_json_log_is_an_object"
    " test_a_job_is_a_child_of_its_enqueue_and_what_the_handler_does_is_one_of_the_job",
    "O10": "test_done_jobs_are_kept_as_asked_and_the_others_a_week_at_least"
    " test_the_leader_deletes_what_has_been_kept_for_its_time_after_it_was_summed",
    "O11": "test_cleaning_can_be_a_job_of_the_applications_own",
    "O12": "test_the_newest_success_with_these_args_is_found test_to_ask_for_longer_than_jobs_are_kept_is_refused",
    "O13": "test_what_a_stopped_worker_gives_back_runs_elsewhere_within_a_second",
    "O14": "test_what_runs_may_end_within_the_grace_and_nothing_more_is_claimed",
    "O15": "test_workers_are_listed_with_what_they_run",
    # testing, quality, layout
    "T1": "test_one_job_runs_without_the_loop test_a_handlers_transaction_is_a_savepoint_of_the_tests_own",
    "T2": "test_the_longer_a_job_took_the_shorter_is_the_wait",
    "T3": "test_each_fault_has_its_file_and_line_and_the_exit_code_is_1 test_the_kinds_of_inserted_jobs"
    " test_jobs_that_wait_without_a_handler_or_with_wrong_args_are_faults",
    "T4": "test_an_applications_tests_use_the_fixtures_as_they_stand"
    " test_processes_of_xdist_share_a_template_that_the_applications_own_function_has_made",
    "T5": DESIGN + "16 Tests",
    "T6": DESIGN + "21: what one worker drains, with the command that measures it",
    "T7": DESIGN + "each decision with its measurement",
    "T8": "test_the_numbers_of_the_demo_are_those_of_the_database",
    "T9": DESIGN + "21 When jobq is the wrong choice",
    # where they disagree
    "X1": "test_f08_an_ended_job_holds_no_key",
    "X2": "test_f14_a_job_out_of_attempts_is_dead_and_says_that_its_worker_was_lost",
    "X3": "test_f25_the_fence_refuses_each_write_of_a_worker_that_lost_the_job",
    "X4": "test_only_the_transitions_of_the_table_happen",
    "X5": "test_a_job_that_may_not_be_interrupted_is_dead_with_attempts_left",
    "X6": "test_a_jobs_own_max_attempts_wins_over_the_handlers",
    "X7": "test_a_failed_job_waits_for_its_delay_by_the_databases_clock"
    " test_a_delay_counts_by_the_clock_of_the_database",
    "X8": "test_f28_a_running_job_is_cancelled_only_when_asked_for test_f28_cancel_refuses_what_runs_or_has_ended",
    "X9": "test_a_pause_holds_in_the_whole_fleet_and_outlives_a_restart test_a_queue_is_paused_for_a_while_and_resumed",
    "X10": "test_f37_an_aware_run_at_is_one_instant_in_any_session",
    "X11": "test_cleaning_can_be_a_job_of_the_applications_own"
    " test_the_leader_deletes_what_has_been_kept_for_its_time_after_it_was_summed",
    "X12": "test_without_a_listener_the_poll_finds_the_jobs",
}


@pytest.mark.parametrize("row", REQUIREMENTS)
def test_each_requirement_has_the_tests_it_names_or_a_reason(row: str) -> None:
    said = REQUIREMENTS[row]
    mentioned = set(re.findall(r"\btest_\w+", said))

    assert mentioned or said.startswith(DESIGN)
    assert mentioned <= names()
