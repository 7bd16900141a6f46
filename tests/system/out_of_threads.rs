//! What if the system has no thread to give to a lane? (`tests/alone` has one that has too few.)

use std::error::Error;

use crate::support::few_threads;

/// Not a test by itself: in a process whose group it sets.
#[test]
fn child_without_threads() {
    few_threads::child(|group, _, lane| {
        group.limit_threads(1);
        let error = lane().build().unwrap_err();
        // Of the system, not of a setting.
        assert!(error.source().is_some(), "{error}");
        group.limit_threads("max");
        let cpu = lane().build().unwrap();
        assert_eq!(cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
        assert!(cpu.shutdown().wait().is_empty());
    });
}

#[test]
fn build_returns_an_error() {
    few_threads::in_groups("out_of_threads::child_without_threads");
}
