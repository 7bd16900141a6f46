//! The stack of a thread that computes, where the kernel lets us have it.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::setting::watched;
use crate::support::time_limit;
use twolane::{Backend, watch};

#[inline(never)]
fn parse_all_of_it(told: &AtomicBool) {
    while !black_box(told.load(SeqCst)) {}
}

#[test]
fn a_stall_has_the_stack_of_its_thread() {
    let _limit = time_limit();
    let watched = watched(Backend::Rayon, Some(1));
    let told = watched.told.clone();
    let handler = watch(async move { parse_all_of_it(&told) });
    watched.spawn_and_wait(handler.named("a handler"));
    let stall = watched.stalls.recv().unwrap();
    assert_eq!(stall.culprit(), Some("a handler"));
    match stall.stack() {
        Some(stack) => {
            assert!(stack.contains("parse_all_of_it"), "{stack}");
            assert!(stall.to_string().ends_with(stack), "{stall}");
        }
        None => eprintln!("NOT TESTED: the kernel gives no stack"),
    }
}
