//! A hang: if no job has ended for long, all that is known of it goes to stderr,
//! and the process ends.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::ledger::Ledger;
use super::process;

#[derive(Default)]
pub struct Watchdog {
    /// Counts whatever is progress.
    beats: AtomicU64,
    round: Mutex<Weak<Ledger>>,
}

impl Watchdog {
    pub fn start(patience: Duration) -> Arc<Self> {
        let this = Arc::new(Self::default());
        let weak = Arc::downgrade(&this);
        let watch = move || {
            let mut last = (u64::MAX, Instant::now());
            while let Some(this) = weak.upgrade() {
                let beats = this.beats.load(Relaxed);
                if beats != last.0 {
                    last = (beats, Instant::now());
                } else if last.1.elapsed() > patience {
                    this.give_up(patience);
                }
                drop(this);
                thread::sleep(Duration::from_millis(500));
            }
        };
        let named = thread::Builder::new().name("soak-watchdog".to_owned());
        named.spawn(watch).expect("a thread for the watchdog");
        this
    }

    pub fn beat(&self) {
        self.beats.fetch_add(1, Relaxed);
    }

    pub fn look_at(&self, round: &Arc<Ledger>) {
        *self.round.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(round);
        self.beat();
    }

    fn give_up(&self, patience: Duration) {
        let round = self.round.lock().unwrap_or_else(PoisonError::into_inner);
        eprintln!("soak: nothing has ended for {patience:?}");
        match round.upgrade() {
            Some(ledger) => eprintln!("{}", ledger.describe()),
            None => eprintln!("between two rounds"),
        }
        eprintln!("{}", process::stacks());
        std::process::abort();
    }
}
