//! Callers of `yield_if_due` and the ticker: the code of `task/clock.rs`, with a ticker that parks at
//! the first tick without a demand.

use std::sync::Arc;

use loom::sync::Notify;
use loom::sync::atomic::AtomicU32 as ClockWord;
use loom::thread;

use crate::model;

#[path = "../../../crates/core/src/task/clock.rs"]
mod clock;

use clock::{Clock, NOT_ASKED};

struct Ticker {
    clock: Clock,
    unparked: Notify,
}

impl Ticker {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            clock: Clock(ClockWord::new(NOT_ASKED)),
            unparked: Notify::new(),
        })
    }

    /// As `task/ticker.rs` does it: one that is not needed parks before it ticks.
    fn tick(&self) {
        if !self.clock.take_demand() && self.clock.try_park() {
            while self.clock.is_parked() {
                self.unparked.wait();
            }
        }
        self.clock.tick();
    }

    fn ask(&self) {
        if self.clock.is_unasked() && self.clock.ask() {
            self.unparked.notify();
        }
    }
}

/// A lost demand would leave the ticker parked for good, which loom reports.
#[test]
fn a_caller_that_asks_beside_a_ticker_that_parks_has_its_tick() {
    model(|| {
        let ticker = Ticker::new();
        let callers: Vec<_> = (0..2)
            .map(|_| {
                let ticker = ticker.clone();
                thread::spawn(move || ticker.ask())
            })
            .collect();
        ticker.tick();
        for caller in callers {
            caller.join().unwrap();
        }
    });
}

#[test]
fn a_demand_takes_no_tick_away() {
    model(|| {
        let ticker = Ticker::new();
        let began = ticker.clock.now();
        let caller = {
            let ticker = ticker.clone();
            thread::spawn(move || {
                ticker.clock.ask();
                ticker.clock.ask();
            })
        };
        ticker.clock.tick();
        ticker.clock.take_demand();
        ticker.clock.tick();
        caller.join().unwrap();
        assert!(ticker.clock.have_passed(began, 2) && !ticker.clock.have_passed(began, 3));
    });
}
