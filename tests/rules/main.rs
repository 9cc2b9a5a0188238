//! Tests that cross crates: one file a rule, named after the rule.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable,
    clippy::unused_async,
    missing_docs,
    unreachable_pub,
    reason = "tests may"
)]
#![allow(
    clippy::field_reassign_with_default,
    reason = "a team is the usual one but for what the test is about"
)]
#![allow(clippy::large_futures, reason = "a test has one of them")]

mod database;
mod desk;
mod team;
mod workloads;

mod agentdojo;
mod retail;

mod a_budget_counts_over_suspensions;
mod a_call_ends_once;
mod a_call_may_ask_several_times;
mod a_call_of_a_dead_instance_is_in_doubt;
mod a_cancelled_run_ends_with_what_its_tools_report;
mod a_cap_holds_on_any_number_of_instances;
mod a_database_is_brought_up_to_date_once;
mod a_decision_is_about_one_fingerprint;
mod a_decision_is_read_strictly;
mod a_declined_call_is_not_asked_again;
mod a_definition_that_changed_asks_again;
mod a_delegated_call_surfaces_at_the_root;
mod a_dynamic_tool_is_gated_as_any_other;
mod a_failed_model_leaves_the_run_resumable;
mod a_future_may_be_dropped_anywhere;
mod a_pending_call_can_be_decided_at_once;
mod a_question_takes_a_fitting_answer_only;
mod a_repeated_approval_starts_nothing;
mod a_session_remembers;
mod a_stranger_can_check_the_journal;
mod a_stream_tells_everything_once;
mod a_suspended_run_survives_a_restart;
mod a_thread_holds_a_conversation;
mod a_tool_keeps_its_time_limit;
mod a_tool_says_which_calls_need_approval;
mod a_worker_goes_on_with_what_was_decided;
mod an_agent_declares_what_holds_for_its_runs;
mod an_amendment_is_gated_anew;
mod an_answer_fits_its_type;
mod an_approved_call_runs_once;
mod any_process_can_attach_to_a_run;
mod arguments_approve_nothing;
mod calls_below_an_agent_are_typed;
mod calls_of_one_step_are_gated_independently;
mod decisions_can_come_in_a_batch;
mod delegation_may_be_deep;
mod earlier_approvers_are_judged_by_the_directory;
mod every_feature_and_fault_has_its_test;
mod generate_ends_with_what_waits;
mod hooks_act_before_anyone_is_asked;
mod nobody_is_asked_about_a_call_that_cannot_run;
mod options_hold_across_suspensions;
mod release_checks_every_ground_again;
mod rows_hold_what_was_put_into_them;
mod spans_are_exported_with_links;
mod spans_follow_the_genai_conventions;
mod strangers_learn_nothing;
mod the_gate_above_holds_below;
mod the_inbox_finds_what_waits;
mod the_journal_verifies;
mod the_refund_desk_keeps_its_promises;
mod tools_added_at_run_time_stand_beside_typed_ones;
mod tools_of_run_time_are_gated_as_declared_ones;
mod two_delegations_wait_at_once;
mod what_a_tool_derives_is_decided_on;
mod what_an_application_gives_along_is_not_stored;
mod what_changed_between_two_processes_decides;
mod what_does_not_answer_in_time_has_failed;
mod what_was_changed_in_the_database_does_not_run;
