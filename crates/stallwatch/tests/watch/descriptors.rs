//! A process that has no file descriptor left.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use stallwatch::{Cause, watch};

use crate::child;
use crate::setting::{Watched, watched};
use crate::wait::wait_until;

/// So that the watch has looked more than twice meanwhile, and longer than a poll may take.
const PROBES: u64 = 6;

/// Waits until so many have run, on another worker.
fn probes(watched: &Watched) -> impl FnOnce() + use<> {
    let probes = watched.probes.clone();
    let until = probes.load(SeqCst) + PROBES;
    move || wait_until(|| probes.load(SeqCst) >= until)
}

/// All of a poll's time counted there, also the time for which it had no core: 57 of 60 polls that
/// computed for 8 ms were told for 113. That the times could not be read was taken for a platform
/// that has none. In a process of its own, which has that limit.
#[test]
fn no_poll_is_accused_whose_times_cannot_be_read() {
    if !child::is_child() {
        let test = "descriptors::no_poll_is_accused_whose_times_cannot_be_read";
        assert_eq!(child::run(test, |_| (), |_| ()), "one that went on");
        return;
    }
    let watched = watched(Some(2));
    let before = getrlimit(Resource::Nofile);
    let none = Rlimit {
        current: Some(0),
        ..before
    };
    setrlimit(Resource::Nofile, none).unwrap();
    let wait = probes(&watched);
    watched.spawn_and_wait(watch(async { wait() }).named("blind"));
    // And this one is told once they can be read.
    let (begins, has_begun) = mpsc::channel();
    let compute = watched.compute("goes on");
    let task = async move {
        begins.send(()).unwrap();
        compute();
    };
    let task = watched.io.spawn(watch(task).named("goes on"));
    has_begun.recv().unwrap();
    probes(&watched)();
    watched.assert_none_was_told_of(&["blind", "goes on"]);
    setrlimit(Resource::Nofile, before).unwrap();
    watched.io.block_on(task).unwrap();
    assert_eq!(*watched.stall_of("goes on").cause(), Cause::Computes);
    watched.assert_none_was_told_of(&["blind"]);
    child::found("one that went on");
}
