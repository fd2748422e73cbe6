"""The faults that break job queues, each with the tests that show that jobq has it not, or the line that says why.

The numbers are those of the project's list: F01 to F74, and A1 to A10, which were found by attacking the design. A line
of DESIGN.md is quoted word for word.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """`shown`: names of tests; `reason`: a line of DESIGN.md, where the fault cannot come about."""

    title: str
    shown: str = ""
    reason: str = ""


ARGUMENTS = {
    "f01": Entry(
        "NUL in an argument aborts the caller's transaction",
        "test_f01_a_nul_character_is_refused_with_its_path"
        " test_f01_f02_f04_refused_arguments_leave_the_transaction_usable"
        " test_f01_six_plain_characters_come_back_equal test_a_payload_arrives_equal_or_is_refused_before_any_sql",
    ),
    "f02": Entry(
        "a lone surrogate, as in some file names, is no JSON to PostgreSQL",
        "test_f02_a_lone_surrogate_is_refused_with_its_path test_f02_an_emoji_is_ordinary_text"
        " test_f01_f02_f04_refused_arguments_leave_the_transaction_usable",
    ),
    "f03": Entry(
        "NaN and infinity: no JSON, and no delay",
        "test_f03_nan_and_infinity_are_refused_with_their_path test_f03_a_span_is_a_timedelta_and_so_never_nan"
        " test_f03_spans_out_of_range_are_refused",
    ),
    "f04": Entry(
        "what JSON cannot encode, or Python not read back, fails where nobody knows which field it was",
        "test_f04_a_value_without_json_form_is_refused test_f04_deep_nesting_is_refused"
        " test_f04_rows_that_python_cannot_parse_are_dead_and_their_neighbours_done"
        " test_f04_what_jsonb_holds_and_python_does_not_read_is_an_args_error",
    ),
    "f05": Entry(
        "JSON makes one key of two, and a list of a tuple",
        "test_f05_a_key_that_is_no_text_is_refused_by_name test_f05_two_keys_that_fall_together_are_refused"
        " test_f05_a_tuple_arrives_as_a_list_where_no_handler_is_at_hand",
    ),
    "f06": Entry(
        "a notification that carries the arguments bounds them to 8 kB",
        "test_f06_a_mebibyte_of_args_starts_at_once_and_arrives_whole"
        " test_f06_a_mebibyte_of_text_is_enqueued_and_told_in_under_100_bytes",
    ),
    "f07": Entry(
        "stored arguments no longer fit the handler after a deploy",
        "test_f07_args_that_no_longer_fit_end_the_job_and_stay_as_they_are"
        " test_f07_args_that_no_longer_fit_are_refused_at_claim"
        " test_f04_rows_that_python_cannot_parse_are_dead_and_their_neighbours_done",
    ),
}
KEYS = {
    "f08": Entry(
        "a dead job keeps its unique key for ever",
        "test_f08_a_key_is_free_once_its_job_has_ended test_f08_an_ended_job_holds_no_key",
    ),
    "f09": Entry(
        "a retry of a job whose key was taken meanwhile is a raw database error, or loses the job",
        "test_f09_a_retry_whose_key_is_taken_is_one_line_that_names_the_holder"
        " test_f09_a_retry_whose_key_is_taken_names_the_holder_and_changes_nothing"
        " test_f09_of_a_thousand_dead_jobs_with_one_key_one_is_retried"
        " test_jobq_does_what_the_reference_says_in_every_history",
    ),
    "f10": Entry(
        "a running job holds its key no longer",
        "test_f10_a_running_job_holds_its_key_against_ten_threads test_f10_of_ten_threads_at_once_one_creates_the_job",
    ),
    "f11": Entry(
        "transactions that want the same keys wait in a circle",
        "test_f11_the_one_that_waits_creates_the_job_when_the_other_rolls_back"
        " test_f11_the_one_that_waits_gets_the_others_id_when_that_commits"
        " test_f11_the_one_that_waits_creates_the_job_when_the_others_ends_at_that_moment"
        " test_f11_a_key_taken_since_the_snapshot_is_the_databases_error"
        " test_f11_keys_in_opposite_order_end_in_the_databases_deadlock_error_for_one"
        " test_f11_bulk_calls_with_keys_in_opposite_order_do_not_deadlock",
    ),
    "f12": Entry(
        "a derived key depends on the order of the arguments, or on the process",
        "test_f12_two_processes_with_different_hash_seeds_derive_one_key"
        " test_f12_equal_content_is_one_key_whatever_its_order test_f12_values_of_other_types_are_other_keys",
    ),
}
RETRIES = {
    "f13": Entry(
        "the backoff overflows before it is capped",
        "test_f13_for_any_policy_and_number_the_delay_is_above_zero_and_within_the_cap"
        " test_f13_a_job_with_thousands_of_failures_is_retried_within_the_cap",
    ),
    "f14": Entry(
        "a job that kills its worker is run again without end",
        "test_f14_a_job_that_kills_its_worker_is_started_as_often_as_it_may_be"
        " test_f14_a_worker_that_its_handler_ends_is_rescued_by_another",
    ),
    "f15": Entry("snoozing uses up attempts", "test_f15_a_hundred_snoozes_use_no_attempt"),
    "f16": Entry(
        "jitter makes a delay zero, or there is none",
        "test_f16_delays_spread_between_half_the_step_and_the_step test_f16_the_retry_time_counts_from_the_failure",
    ),
    "f17": Entry(
        "a job that waits for its retry counts as old",
        "test_f17_a_retry_keeps_created_at_and_counts_as_scheduled"
        " test_f17_a_job_that_waits_for_its_retry_is_scheduled_and_not_old",
    ),
    "f18": Entry(
        "a dead job retried by hand dies again without running, or forgets its errors",
        "test_f18_a_dead_job_retried_by_hand_runs_again_and_keeps_its_history"
        " test_f18_a_dead_job_is_retried_and_a_pending_one_is_not test_f18_a_job_that_has_not_ended_is_not_retried",
    ),
}
CLAIMS = {
    "f19": Entry(
        "a claim takes more than its limit, when the planner repeats the subquery",
        "test_f19_a_claim_takes_its_limit_whatever_the_planner_does",
    ),
    "f20": Entry(
        "a batch runs out of order",
        "test_f20_jobs_start_in_the_order_of_priority_time_and_id"
        " test_f20_of_more_than_are_asked_for_the_earliest_are_claimed",
    ),
    "f21": Entry(
        "nobody knows which way priorities go",
        "test_f21_smaller_priorities_run_first test_f21_other_priorities_are_errors_that_name_the_range"
        " test_f21_a_priority_of_another_type_is_a_type_error",
    ),
    "f22": Entry(
        "a flood in one queue stops the others",
        "test_f22_a_flood_in_one_queue_starves_no_other test_f22_with_all_queues_full_each_has_its_share"
        " test_f22_a_flood_does_not_keep_a_few_jobs_of_another_queue_waiting",
    ),
    "f23": Entry(
        "the application's isolation level makes claims and ends fail",
        "test_f23_the_isolation_level_of_the_applications_engine_is_not_the_workers"
        " test_f23_the_isolation_level_of_the_database_is_not_the_workers"
        " test_f23_an_end_that_meets_a_deadlock_is_written_again",
    ),
}
LEASES = {
    "f24": Entry(
        "a handler that blocks the event loop loses its lease",
        "test_f24_a_handler_that_blocks_the_loop_for_longer_than_the_lease_keeps_its_job",
    ),
    "f25": Entry(
        "a worker that was frozen overwrites what the next one did",
        "test_f25_a_job_that_another_worker_has_ended_stays_as_that_one_left_it"
        " test_f25_a_job_that_another_worker_still_runs_is_left_to_it"
        " test_f25_a_job_that_the_same_process_has_claimed_anew_is_not_ended_by_its_former_attempt"
        " test_f25_each_part_of_the_fence_refuses_a_stale_attempt",
    ),
    "f26": Entry(
        "orphans whose worker's row is gone, or whose worker's name lives on, are never found",
        "test_f26_a_restarted_worker_of_the_same_name_keeps_nothing_of_the_dead_one_alive"
        " test_f26_jobs_of_a_worker_whose_row_was_deleted_by_hand_are_rescued"
        " test_f26_an_id_is_never_used_by_two_workers",
    ),
    "f27": Entry(
        "the rescue itself gets stuck",
        "test_f27_a_worker_frozen_in_the_middle_of_a_rescue_does_not_keep_others_from_theirs"
        " test_f27_a_worker_killed_in_the_middle_of_a_rescue_does_not_keep_others_from_theirs",
    ),
    "f28": Entry(
        "cancel says yes and the job ends as done",
        "test_f28_in_a_race_with_a_claim_exactly_one_wins"
        " test_f28_in_a_race_with_a_completion_exactly_one_wins_and_the_loser_is_told"
        " test_f28_a_running_job_is_cancelled_only_when_asked_for test_f28_a_waiting_job_is_cancelled_for_good",
    ),
}
ENDS_OF_PROCESSES = {
    "f29": Entry(
        "signals: a second one is ignored, or the first one kills",
        "test_f29_a_second_signal_gives_back_at_once test_f29_an_idle_worker_ends_at_the_first_signal",
    ),
    "f30": Entry(
        "a handler swallows its cancellation and keeps the process",
        "test_f30_a_handler_that_swallows_its_cancellation_does_not_keep_the_process",
    ),
    "f31": Entry(
        "a thread that cannot be stopped keeps the process",
        "test_f31_a_thread_that_does_not_end_does_not_keep_the_process"
        " test_f31_what_handlers_leave_to_the_end_of_the_interpreter_does_not_keep_the_process",
    ),
    "f32": Entry(
        "as process 1 a worker ignores SIGTERM and leaves zombies",
        "test_f32_as_process_1_it_gives_back_what_runs_and_ends_with_0"
        " test_f32_as_process_1_it_leaves_no_zombies_of_its_own_children",
    ),
    "f33": Entry(
        "sys.exit and its like in a handler end the worker",
        "test_f33_any_base_exception_is_one_failure_and_the_neighbour_lives"
        " test_f33_each_act_has_its_end_and_the_worker_works_on",
    ),
    "f34": Entry(
        "a child process that dies takes the pool along",
        "test_f34_a_child_that_dies_fails_its_own_job_alone_and_the_pool_heals",
    ),
    "f35": Entry(
        "an exception that cannot be described breaks the recording of it",
        "test_f35_an_exception_that_cannot_be_described_is_recorded_by_its_class"
        " test_f35_any_exception_is_described_in_bounded_storable_text",
    ),
    "f36": Entry(
        "a session that a handler leaves open or aborted reaches the next job",
        "test_f36_a_session_that_one_job_left_open_or_aborted_never_reaches_the_next"
        " test_f36_a_session_that_a_handler_left_aborted_touches_nobody_else",
    ),
}
