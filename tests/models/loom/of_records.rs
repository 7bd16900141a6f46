//! A thread that notes what it does, and the watch that reads it, in every interleaving that loom
//! explores: `record.rs` of `stallwatch`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use loom::thread;

use crate::name::Name;
use crate::record::{Activity, Kind, Record};

/// The kind, name and deadline of each poll: none has one of another one's.
const POLLS: [(Kind, Name, u64); 2] = [(Kind::POLL, Name(1), 1), (Kind::SPAN, Name(2), 0)];

/// Far away, and one for each test: the epoch of the process is its first use.
fn deadline(hours: u64) -> Option<Instant> {
    (hours > 0).then(|| Instant::now() + Duration::from_secs(hours * 3_600))
}

fn poll(record: &Record, (kind, name, hours): (Kind, Name, u64)) {
    record.begin(kind, name, deadline(hours));
}

/// Which poll that is. Panics if it is made of two.
fn which(read: Activity) -> usize {
    let in_a_day = Instant::now() + Duration::from_secs(86_400);
    let is_it = |(kind, name, hours): &(Kind, Name, u64)| {
        (read.kind, read.outer, read.is_late(in_a_day)) == (*kind, *name, *hours > 0)
    };
    let which = POLLS.iter().position(is_it);
    which.unwrap_or_else(|| panic!("it is made of two polls: {read:?}"))
}

/// Runs `f` with a record of this thread, which is in the process's list meanwhile, in each
/// interleaving.
fn model(f: impl Fn(&Arc<Record>) + Sync + Send + 'static) {
    crate::model(move || {
        let record = Record::of_this_thread();
        f(&record);
        record.remove();
    });
}

#[test]
fn what_is_read_is_of_one_poll() {
    model(|record| {
        let watched = record.clone();
        let thread = thread::spawn(move || {
            for each in POLLS {
                poll(&watched, each);
                watched.end();
            }
        });
        let reads = [record.read(), record.read()];
        let [first, second] = reads.map(|read| read.map(|it| (it.count, which(it))));
        if let (Some(first), Some(second)) = (first, second) {
            assert!(first <= second, "a poll that is over comes back");
            assert_eq!(first.0 == second.0, first.1 == second.1);
        }
        thread.join().unwrap();
        assert_eq!(record.read(), None, "it is over");
    });
}

#[test]
fn a_poll_that_lasts_is_read() {
    model(|record| {
        let watched = record.clone();
        let thread = thread::spawn(move || {
            poll(&watched, POLLS[0]);
            watched.end();
            poll(&watched, POLLS[1]);
        });
        let meanwhile = record.read().map(which);
        thread.join().unwrap();
        let read = record.read().expect("it lasts");
        assert_eq!(which(read), 1);
        assert!(meanwhile.is_none_or(|poll| poll <= 1));
        // A look later it is the same one.
        assert_eq!(record.read().map(|again| again.count), Some(read.count));
    });
}
