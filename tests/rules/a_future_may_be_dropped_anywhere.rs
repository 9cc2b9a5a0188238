//! A caller may go away at any moment, and with it the future that it waited for: nobody else
//! notices it.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use agentkit::{memory::Thread, prelude::*};

use crate::desk::*;

/// A future that is dropped when it has waited so many times.
struct Impatient<F> {
    future: Pin<Box<F>>,
    waits: usize,
}

impl<F: Future> Future for Impatient<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.waits == 0 {
            return Poll::Ready(None);
        }
        self.waits -= 1;
        Poll::Ready(Some(ready!(self.future.as_mut().poll(context))))
    }
}

async fn dropped_after<F: Future>(waits: usize, future: F) -> Option<F::Output> {
    Impatient {
        future: Box::pin(future),
        waits,
    }
    .await
}

#[tokio::test]
async fn and_the_next_decision_counts() {
    let world = World::new();
    for waits in 0.. {
        let desk = world.host(pays("bob", 5)).await;
        let (_, call) = stopped(&desk).await;
        let first = dropped_after(waits, desk.decide(&fiona(), approve(&call))).await;
        // Often enough to use every connection of the pool.
        for _ in 0..6 {
            let next = desk.decide(&fiona(), approve(&call)).await;
            assert!(next.is_ok(), "after {waits} waits: {next:?}");
        }
        if first.is_some() {
            assert!(waits > 0, "a decision waits for the database");
            break;
        }
    }
}

#[tokio::test]
async fn and_the_run_can_be_continued() {
    let world = World::new();
    for waits in 0.. {
        let desk = world.host(pays("bob", 5)).await;
        let (run, call) = stopped(&desk).await;
        desk.decide(&fiona(), approve(&call)).await.unwrap();
        let first = dropped_after(waits, desk.resume_and_wait(&run)).await;
        let ending = desk.resume_and_wait(&run).await;
        let ending = ending.unwrap_or_else(|error| panic!("after {waits} waits: {error:?}"));
        assert_eq!(finished(ending), "Succeeded: \"paid bob\"");
        if first.is_some() {
            break;
        }
    }
    let paid = world.ledger.effects();
    assert!(paid.len() > 1, "continuing a run waits for the database");
}

#[tokio::test]
async fn and_its_thread_takes_the_next_message() {
    let world = World::new();
    let desk = world.host(echo()).await;
    let input = || Input::new(alice(), "go").thread(Thread::new("talk"));
    for waits in 0.. {
        let first = dropped_after(waits, desk.stream(input())).await;
        let next = desk.generate(input()).await;
        let next = next.unwrap_or_else(|error| panic!("after {waits} waits: {error:?}"));
        finished(next);
        if first.is_some() {
            assert!(waits > 0, "a start waits for the database");
            break;
        }
    }
}

#[tokio::test]
async fn and_what_is_over_is_rooted_and_erased_once() {
    let world = World::new();
    let desk = world.host(echo()).await;
    let store = desk.runtime().store();
    for waits in 0.. {
        let running = desk.stream(Input::new(alice(), "go")).await.unwrap();
        let run = running.run().clone();
        running.ending().await.unwrap();
        let rooted = dropped_after(waits, store.write_root()).await;
        store.write_root().await.unwrap();
        let erased = dropped_after(waits, store.erase(&run, "asked for")).await;
        store.erase(&run, "asked for").await.unwrap();
        store.verify_journal(&run).await.unwrap().unwrap();
        if rooted.is_some() && erased.is_some() {
            assert!(waits > 0, "both wait for the database");
            break;
        }
    }
}
