//! The CPU job's work: keeps its thread busy, and can be told that the round is over.

use std::hint::black_box;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How a CPU job keeps its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Busy {
    /// `std::thread::sleep`, as published: the thread is gone, the core is free.
    Sleep,
    /// Computing: the core is taken too.
    Burn,
}

impl Busy {
    pub const ALL: [Self; 2] = [Self::Sleep, Self::Burn];

    pub fn key(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Burn => "burn",
        }
    }
}

/// A stretch of time in which one thread was kept busy.
pub struct Span {
    pub thread: String,
    pub from: Instant,
    pub to: Instant,
}

/// Every busy job of a round passes through its gate, so that the next round can wait until the
/// threads of this one are really done.
pub struct Gate {
    busy: Busy,
    state: Mutex<State>,
    quiet: Condvar,
}

#[derive(Default)]
struct State {
    closed: bool,
    inside: usize,
    spans: Vec<Span>,
}

impl Gate {
    pub fn new(busy: Busy) -> Self {
        Self {
            busy,
            state: Mutex::default(),
            quiet: Condvar::new(),
        }
    }

    /// Keeps the calling thread busy for `time`; not at all once the gate is closed. A burn stops
    /// when the gate closes, a sleep does not.
    pub fn keep_busy(&self, time: Duration) {
        let from = Instant::now();
        {
            let mut state = self.state.lock().unwrap();
            if state.closed {
                return;
            }
            state.inside += 1;
        }
        match self.busy {
            Busy::Sleep => thread::sleep(time),
            Busy::Burn => {
                while from.elapsed() < time && !self.is_closed() {
                    compute();
                }
            }
        }
        let span = Span {
            thread: thread::current().name().unwrap_or_default().to_owned(),
            from,
            to: Instant::now(),
        };
        let mut state = self.state.lock().unwrap();
        state.inside -= 1;
        state.spans.push(span);
        self.quiet.notify_all();
    }

    pub fn is_closed(&self) -> bool {
        self.state.lock().unwrap().closed
    }

    /// Lets no more jobs in, and waits until all are out.
    pub fn close(&self) {
        let mut state = self.state.lock().unwrap();
        state.closed = true;
        let _empty = self
            .quiet
            .wait_while(state, |state| state.inside > 0)
            .unwrap();
    }

    /// Waits until `jobs` jobs have been through, but no longer than `limit`.
    pub fn wait_for(&self, jobs: usize, limit: Duration) {
        let state = self.state.lock().unwrap();
        let unfinished = |state: &mut State| state.spans.len() < jobs;
        drop(
            self.quiet
                .wait_timeout_while(state, limit, unfinished)
                .unwrap(),
        );
    }

    /// Which thread was busy when, so far.
    pub fn take_spans(&self) -> Vec<Span> {
        std::mem::take(&mut self.state.lock().unwrap().spans)
    }
}

/// Some tens of microseconds of arithmetic that no compiler can leave out.
fn compute() {
    let mut x = black_box(0x9E37_79B9_7F4A_7C15_u64);
    for _ in 0..20_000 {
        x = black_box(x ^ (x << 13));
        x ^= x >> 7;
    }
    black_box(x);
}
