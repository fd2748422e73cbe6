"""The rest of the table: time, connections, sessions, migrations, operating, and what attacking the design found."""

from __future__ import annotations

from entries import Entry

TIME = {
    "f37": Entry(
        "a naive run_at is another moment in another session",
        "test_f37_a_naive_run_at_is_refused test_f37_an_aware_run_at_is_one_instant_in_any_session"
        " test_f37_a_run_at_that_is_no_datetime_is_a_type_error",
    ),
    "f38": Entry(
        "the worker's clock decides what is due",
        "test_f38_a_host_whose_clock_is_an_hour_off_works_as_any_other"
        " test_f38_a_tick_that_the_databases_clock_has_not_reached_is_not_fired",
    ),
    "f39": Entry(
        "a daily job runs twice in the autumn night and not in the spring night",
        "test_f39_some_switches_by_hand test_f39_so_it_is_in_every_zone_at_every_switch_of_2026_to_2030",
    ),
    "f40": Entry(
        "an impossible schedule is found at its first tick, or never",
        "test_f40_what_can_never_be_due_is_refused_at_registration test_f40_step_and_day_rules"
        " test_f40_a_zone_that_is_not_there_is_refused_at_registration",
    ),
    "f41": Entry(
        "two schedulers enqueue one tick twice",
        "test_f41_two_workers_fire_each_tick_once test_f41_two_workers_stopped_and_woken_settle_each_tick_once"
        " test_f41_a_tick_that_is_settled_is_not_fired_again_even_when_its_job_has_ended",
    ),
}
CONNECTIONS = {
    "f42": Entry(
        "an outage ends the worker, or an end is never recorded",
        "test_f42_jobs_survive_the_end_of_every_connection_and_a_restart"
        " test_f42_jobs_that_run_while_every_connection_is_cut_are_recorded_once"
        " test_f42_an_outage_is_said_once_and_its_end_once",
    ),
    "f43": Entry(
        "a column that is added breaks prepared statements",
        "test_f43_a_column_added_while_workers_run_disturbs_nobody",
    ),
    "f44": Entry(
        "a transaction is open while the handler runs",
        "test_f44_no_connection_of_the_worker_is_in_a_transaction_while_a_handler_runs",
    ),
    "f45": Entry("children inherit connections", "test_f45_children_share_no_connection_with_their_worker"),
    "f46": Entry(
        "a statement that hangs stalls the worker for ever",
        "test_f46_a_locked_table_stops_neither_the_heartbeat_nor_what_comes_after"
        " test_f46_a_worker_can_be_stopped_while_the_table_is_locked"
        " test_f46_a_server_that_does_not_answer_does_not_keep_the_process",
    ),
    "f47": Entry(
        "the listening connection is never made again",
        "test_f47_a_listener_whose_connection_is_cut_listens_again"
        " test_f47_what_is_enqueued_while_nobody_listens_is_found_on_the_way_back"
        " test_f47_a_listener_that_is_cut_again_and_again_costs_little_and_jobs_start_by_the_poll",
    ),
    "f48": Entry(
        "a listener inside a transaction hears nothing",
        "test_f48_the_listener_is_idle_and_outside_of_any_transaction",
    ),
    "f49": Entry(
        "names of queues become names of channels",
        "test_f49_any_queue_name_that_is_allowed_wakes_the_worker test_f49_f67_names_outside_of_the_rule_are_refused",
    ),
    "f50": Entry(
        "a notification for each row",
        "test_f50_ten_thousand_jobs_of_one_transaction_are_one_notification"
        " test_f50_an_idle_worker_that_is_told_again_and_again_looks_twenty_times_a_second"
        " test_f50_notifications_can_be_switched_off test_f51_a_rolled_back_savepoint_alone_tells_nobody",
    ),
}
SESSIONS = {
    "f51": Entry(
        "a job is seen before the commit, or outlives a rollback",
        "test_f51_nobody_sees_the_job_or_hears_of_it_before_the_commit"
        " test_f51_a_savepoints_rollback_drops_its_job_only test_f51_a_job_starts_after_its_commit_and_not_before"
        " test_jobq_does_what_the_reference_says_in_every_history",
    ),
    "f52": Entry(
        "enqueue from events of a session",
        "test_f52_an_event_of_any_session_may_enqueue_what_is_being_written"
        " test_f52_after_the_commit_sqlalchemys_own_error_comes_through",
    ),
    "f53": Entry(
        "async sessions in sync functions, and imports that need greenlet",
        "test_f53_async_sessions_are_refused_with_the_name_of_the_other_function"
        " test_f53_sync_sessions_are_refused_with_the_name_of_the_other_function"
        " test_f53_without_greenlet_jobq_is_imported_and_jobs_are_enqueued"
        " test_f53_tasks_that_share_a_session_by_mistake_get_sqlalchemys_own_error",
    ),
}
SCHEMA = {
    "f54": Entry(
        "two processes migrate at once",
        "test_f54_eight_processes_migrate_at_once test_f54_a_process_killed_in_the_middle_leaves_nothing",
    ),
    "f55": Entry(
        "the application's autogenerate drops jobq's tables",
        "test_f55_an_autogenerate_of_the_application_sees_nothing_of_jobq test_f55_check_finds_no_difference",
    ),
    "f56": Entry("one table alembic_version for two", "test_f56_the_version_table_of_the_application_is_untouched"),
    "f57": Entry(
        "folders that shadow installed packages",
        "test_f57_the_folder_of_the_migrations_does_not_shadow_alembic"
        " test_f57_the_wheel_has_the_three_packages_and_nothing_else_on_top"
        " test_f57_the_migrations_are_found_from_an_installed_wheel",
    ),
    "f58": Entry(
        "migrations that cannot be undone, or done again",
        "test_f58_up_down_up_with_jobs_present test_f58_up_down_up_with_data_on_both_sides",
    ),
    "f59": Entry(
        "another schema is forgotten in some statements",
        "test_f59_another_schema_by_translation_holds_everything test_f59_f61_such_a_role_has_every_command"
        " test_f59_a_role_needs_no_search_path",
    ),
    "f60": Entry(
        "a missing schema is a loop of tracebacks, a newer one is damaged",
        "test_f60_what_does_not_fit_is_one_line_and_not_touched test_f60_a_newer_schema_is_refused_and_never_touched"
        " test_f60_without_the_tables_it_says_what_to_type",
    ),
    "f61": Entry(
        "a percent sign in the URL",
        "test_f61_a_password_with_percent_signs_connects test_f59_f61_such_a_role_migrates_enqueues_works_and_rescues",
    ),
    "f62": Entry(
        "the cleaner deletes all at once",
        "test_f62_very_many_expired_jobs_go_in_chunks_while_claims_do_not_wait",
    ),
    "f63": Entry(
        "an old snapshot makes claims slow",
        "test_f63_a_claim_reads_no_more_pages_after_twenty_thousand_jobs_behind_an_open_snapshot",
    ),
}
OPERATING = {
    "f64": Entry(
        "numbers of nothing",
        "test_f64_stats_of_nothing_are_zeros test_f64_with_only_scheduled_jobs_nothing_is_due"
        " test_f64_with_only_dead_jobs_nothing_is_due",
    ),
    "f65": Entry(
        "a mistyped queue or state is taken in silence",
        "test_f65_a_queue_that_nothing_uses_is_doubted_with_the_known_names"
        " test_f65_a_filter_that_cannot_be_meant_is_exit_code_2"
        " test_f65_a_queue_that_nobody_knows_is_an_empty_list_and_a_note",
    ),
    "f66": Entry(
        "exit codes that do not tell, and tracebacks",
        "test_f66_an_unknown_id_is_one_line_and_exit_code_1 test_f66_what_cannot_be_imported_is_named_in_one_line"
        " test_f66_f69_a_database_that_is_down_is_one_line_without_the_password"
        " test_f66_a_database_that_is_away_is_waited_for_and_said_once",
    ),
    "f67": Entry(
        "values that reach SQL as text",
        "test_f67_hostile_texts_are_plain_data test_f67_what_filters_look_for_is_data"
        " test_f67_text_that_would_be_sql_is_no_name",
    ),
    "f68": Entry(
        "a listing into a closed pipe or a full device",
        "test_f68_a_reader_that_goes_away_is_met_quietly test_f68_a_full_device_is_one_line_and_a_failure",
    ),
    "f69": Entry(
        "passwords and arguments in logs and errors",
        "test_f69_a_wrong_password_ends_it_in_one_line_that_does_not_hold_it"
        " test_f69_an_error_of_the_database_shows_no_values test_f69_a_malformed_url_is_refused_without_its_password"
        " test_f69_a_listing_does_not_show_args",
    ),
    "f70": Entry(
        "HTML that is made of arguments",
        "test_f70_nothing_here_makes_pages_of_html test_f70_what_is_no_page_is_refused_and_never_repeated",
    ),
    "f71": Entry(
        "a module that is run as a script registers other names",
        "test_f71_a_module_that_is_run_as_a_script_enqueues_what_the_worker_knows"
        " test_f71_a_module_that_is_executed_twice_is_told_so",
    ),
    "f72": Entry(
        "a job of an unknown kind stops the worker, or is lost",
        "test_f72_a_kind_without_a_handler_waits_and_holds_nobody_up",
    ),
    "f73": Entry(
        "failed jobs keep their frames alive",
        "test_f73_what_a_failed_job_held_is_freed_without_the_collector test_nothing_grows_but_what_leaks",
    ),
    "f74": Entry(
        "each reconnect, each child leaves something open",
        "test_f74_connections_cut_fifty_times_leave_nothing_behind test_f74_five_hundred_jobs_leave_no_descriptor"
        " test_nothing_grows_but_what_leaks",
    ),
}
ATTACKS = {
    "a1": Entry(
        "a claim is committed and its answer lost",
        "test_a1_a_claim_whose_answer_is_lost_costs_its_jobs_nothing"
        " test_a1_jobs_of_a_claim_whose_answer_was_lost_run_once_and_cost_nothing"
        " test_a1_reconcile_gives_back_what_the_worker_does_not_know_of",
    ),
    "a2": Entry(
        "one frozen client blocks the rescue of all",
        "test_a2_a_worker_frozen_before_its_commit_does_not_keep_others_from_being_rescued"
        " test_a2_a_worker_frozen_in_its_own_transaction_blocks_the_rescue_of_nobody_else",
    ),
    "a3": Entry(
        "a stop with a claim in flight strands its jobs",
        "test_a3_a_claim_that_commits_after_its_worker_was_told_to_stop_strands_no_job"
        " test_a3_a_claim_that_arrives_after_its_worker_has_left_takes_nothing",
    ),
    "a4": Entry(
        "a short lease judges a long one; an outage kills the fleet's jobs",
        "test_a4_a_long_lease_is_not_judged_by_a_short_one"
        " test_a4_an_outage_of_twice_the_lease_costs_no_job_an_attempt",
    ),
    "a5": Entry(
        "one text that cannot be stored spoils a batch of ends for ever",
        "test_a5_text_that_the_database_cannot_hold_spoils_nobodys_result"
        " test_a5_any_text_of_a_handlers_making_is_recorded_with_its_batch",
    ),
    "a6": Entry(
        "the event loop hangs for good and keeps its jobs",
        "test_a6_a_worker_whose_loop_hangs_ends_itself_and_says_where",
    ),
    "a7": Entry(
        "in autocommit a rollback keeps the job",
        "test_a7_autocommit_is_refused test_a7_autocommit_is_seen_however_and_with_whichever_driver_it_was_set",
    ),
    "a8": Entry(
        "two versions share a database",
        "test_a8_both_schedules_fire test_a8_beside_an_old_version_without_fifo_the_queue_stays_one_at_a_time"
        " test_a8_a_default_that_differs_is_a_warning_that_names_both_once",
    ),
    "a9": Entry(
        "a pause that others do not hear of in time",
        "test_a9_twenty_handlers_that_pause_at_once_are_one_pause_and_one_event",
    ),
    "a10": Entry(
        "a queue that nobody declares; a crowd of unknown kinds",
        "test_a10_a_queue_that_no_code_declares_starts_at_once_when_told"
        " test_a10_a_queue_that_no_code_declares_is_found_by_a_survey"
        " test_a10_a_crowd_of_another_kind_is_walked_through_once",
    ),
}
