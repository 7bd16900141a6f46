//! Keeps a computing lane from using up a CPU quota that the I/O lane lives on
//! as well.
//!
//! A cgroup with a quota of one core may compute for 100 ms in each period of
//! 100 ms, all threads together; then the kernel stops every one of them until
//! the period ends. Weights don't help: they share what there is, and there is
//! nothing left. Nor do fewer threads, where the quota is one core, or where
//! another priority computes beside.
//!
//! So the lane's threads keep accounts between two jobs, and one that finds no
//! credit sleeps until there is some:
//!
//! - **The shared account** is credited with nine tenths of the quota as time
//!   passes, and debited with the CPU time of the *process*: what the I/O lane
//!   takes is thus taken from the CPU lane. Normal lives on it, and so does Low,
//!   which leaves the last half of the credit to Normal.
//! - **High's own account** has the same income and is debited with what
//!   High's threads have used. A High job is there because somebody waits: it
//!   shall not pay for what Low did before.
//! - **Normal's and Low's own accounts** are for bad times: once the shared one
//!   had nothing for them for as long as a period, each has a tenth of the
//!   quota until it has again. An I/O lane that needs all of the quota slows
//!   the CPU lane down, but does not stop it.
//!
//! Credit is kept up to a tenth of a period's quota: a burst after a rest, and
//! a full income for the period after it, are together one quota. Debt is kept
//! up to a period's quota.
//!
//! A job is not interrupted: one that runs for longer than the quota lasts is
//! stopped by the kernel, and all others with it. Futures that
//! [`yield_if_due`](crate::yield_if_due) have such a pause at each turn.
//!
//! Only threads of the CPU lane lock the accounts.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::cpu_clock;
use super::quota::Quota;
use crate::priority::Priority;

/// Of the quota, for all that computes. The rest is for jobs that run a little
/// over.
const SHARE: f64 = 0.9;
/// Of the quota, for a priority that would get nothing. It is the same tenth,
/// so that an account that was closed has its credit back after a period.
const FLOOR: f64 = 1.0 - SHARE;

/// A sleep is cut in pieces of this, so that a thread sees its lane close.
const NAP: Duration = Duration::from_millis(5);

const SHORTEST_WAIT: Duration = Duration::from_micros(1);

/// As long as there is credit, the books are not looked at more often.
const LOOK_AGAIN: Duration = Duration::from_micros(250);

pub(crate) struct Pacer {
    pub(crate) quota: Quota,
    books: Mutex<Books>,
}

struct Books {
    at: Instant,
    process: Duration,
    shared: Account,
    own: [Account; Priority::ALL.len()],
}

/// In seconds of CPU time; negative: overdrawn.
struct Account {
    credit: f64,
    /// Per second.
    income: f64,
    most_credit: f64,
    most_debt: f64,
}

impl Account {
    fn new(quota: Quota, share: f64) -> Self {
        let of_a_period = quota.cores * quota.period.as_secs_f64();
        let most_credit = of_a_period * (1.0 - SHARE);
        Self {
            credit: most_credit,
            income: quota.cores * share,
            most_credit,
            most_debt: of_a_period,
        }
    }

    /// Has to wait for a period from now.
    fn close(&mut self) {
        self.credit = -self.most_credit;
    }

    fn book(&mut self, passed: Duration, spent: Duration) {
        let credit = self.credit + passed.as_secs_f64() * self.income - spent.as_secs_f64();
        self.credit = credit.clamp(-self.most_debt, self.most_credit);
    }

    /// How long until there is more than `reserve`, a share of the most that
    /// there can be; none if it is there.
    fn wait_for(&self, reserve: f64) -> Option<Duration> {
        let missing = reserve * self.most_credit - self.credit;
        let wait = || Duration::from_secs_f64(missing / self.income);
        // Rounded up, so that it is there then.
        (missing > 0.0).then(|| wait() + SHORTEST_WAIT)
    }
}

/// What a thread knows of itself since its last look into the books.
#[derive(Clone, Copy, Default)]
struct Visit {
    thread: Option<Duration>,
    /// It computed by the floor's right.
    on_floor: bool,
}

thread_local! {
    static LAST_VISIT: Cell<Visit> = const { Cell::new(Visit { thread: None, on_floor: false }) };
}

/// The clocks, and the sleep, that a test may want to set.
trait Clocks {
    fn now(&self) -> Instant;
    fn of_process(&self) -> Option<Duration>;
    fn of_thread(&self) -> Option<Duration>;
    fn sleep(&self, time: Duration);
}

struct RealClocks;

impl Clocks for RealClocks {
    fn now(&self) -> Instant {
        Instant::now()
    }
    fn of_process(&self) -> Option<Duration> {
        cpu_clock::of_process()
    }
    fn of_thread(&self) -> Option<Duration> {
        cpu_clock::of_thread()
    }
    fn sleep(&self, time: Duration) {
        thread::sleep(time);
    }
}

impl Pacer {
    /// None if there is no quota to keep, or no clock to keep it by.
    pub(crate) fn for_this_process() -> Option<Self> {
        let used = cpu_clock::of_process()?;
        Some(Self::new(Quota::below_cores()?, Instant::now(), used))
    }

    fn new(quota: Quota, at: Instant, process: Duration) -> Self {
        let own = |priority| match priority {
            Priority::High => Account::new(quota, SHARE),
            Priority::Normal | Priority::Low => {
                let mut own = Account::new(quota, FLOOR);
                own.close();
                own
            }
        };
        Self {
            quota,
            books: Mutex::new(Books {
                at,
                process,
                shared: Account::new(quota, SHARE),
                own: Priority::ALL.map(own),
            }),
        }
    }

    /// Sleeps until a job of this priority may compute, or until `is_over` says
    /// that it doesn't matter.
    pub(crate) fn pause(&self, priority: Priority, is_over: impl Fn() -> bool) {
        self.pause_by(&RealClocks, priority, is_over);
    }

    fn pause_by(&self, clocks: &impl Clocks, priority: Priority, is_over: impl Fn() -> bool) {
        while let Some(wait) = self.must_wait(clocks, priority) {
            if is_over() {
                return;
            }
            clocks.sleep(wait.min(NAP));
        }
    }

    fn must_wait(&self, clocks: &impl Clocks, priority: Priority) -> Option<Duration> {
        let last = LAST_VISIT.get();
        let now = clocks.now();
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(books.at);
        let has_credit = books.wait(priority).is_none();
        if has_credit && passed < LOOK_AGAIN && !last.on_floor && last.thread.is_some() {
            return None;
        }
        let thread = clocks.of_thread()?;
        let process = clocks.of_process()?;
        let spent = thread.saturating_sub(last.thread.unwrap_or(thread));
        let process_spent = process.saturating_sub(books.process);
        books.shared.book(passed, process_spent);
        for of in Priority::ALL {
            let is_mine = of == priority && (of == Priority::High || last.on_floor);
            let spent = if is_mine { spent } else { Duration::ZERO };
            books.own[of.index()].book(passed, spent);
            if of != Priority::High && books.wait(of).is_none() {
                books.own[of.index()].close();
            }
        }
        books.at = books.at.max(now);
        books.process = process;
        let wait = books.wait(priority);
        let floor = books.own[priority.index()].wait_for(0.0);
        let on_floor = wait.is_some() && floor.is_none();
        LAST_VISIT.set(Visit {
            thread: Some(thread),
            on_floor,
        });
        // Who waits, waits for whatever comes first.
        Some(wait?.min(floor?))
    }
}

impl Books {
    /// For a priority's ordinary right to compute.
    fn wait(&self, priority: Priority) -> Option<Duration> {
        match priority {
            Priority::High => self.own[priority.index()].wait_for(0.0),
            Priority::Normal => self.shared.wait_for(0.0),
            Priority::Low => self.shared.wait_for(0.5),
        }
    }
}

#[cfg(test)]
mod tests;
