//! Rules of the server, each against a real listener.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unused_async,
    missing_docs,
    unreachable_pub,
    reason = "tests may"
)]

mod client;
mod events;
mod house;

mod a_decision_continues_the_run;
mod a_stream_can_be_attached_again;
mod batches_are_of_one_harmless_tool;
mod hostile_requests_get_4xx;
mod identities_come_from_credentials_only;
mod one_decision_wins;
mod only_strict_bodies_decide;
mod the_live_list_tells_everything;
mod the_openapi_document_is_true;
mod threads_belong_to_one_person;
mod tokens_of_a_provider_hold_exactly_as_long_as_they_say;
mod what_the_policy_would_say;
mod what_you_may_not_see_does_not_exist;
