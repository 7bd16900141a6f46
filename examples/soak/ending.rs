//! The end of a round's lane, and of the I/O runtime that it may be bound to:
//! in any form, from anywhere, at any moment.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use futures::poll;
use tokio::runtime::Runtime;
use twolane::{CpuRuntime, Remaining, Shutdown};

use super::kinds::Kind;
use super::ledger::{Aside, Ledger, What};
use super::plan::{Form, Place};
use super::submit::{Extra, Way, submit};

/// What is to be ended in a round, and how far that is.
#[derive(Debug)]
pub struct Endings {
    lane: Mutex<Option<Ending>>,
    io: Mutex<Option<Runtime>>,
    io_dies: AtomicBool,
    /// Before the call that shuts the lane down.
    begun: AtomicBool,
    /// After that.
    done: AtomicBool,
    /// All of the lane's threads have ended.
    over: AtomicBool,
}

impl Endings {
    pub fn new(lane: Ending, io: Option<Runtime>) -> Self {
        Self {
            lane: Mutex::new(Some(lane)),
            io: Mutex::new(io),
            io_dies: AtomicBool::new(false),
            begun: AtomicBool::new(false),
            done: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    pub fn io_dies(&self) -> bool {
        self.io_dies.load(SeqCst)
    }
    pub fn has_begun(&self) -> bool {
        self.begun.load(SeqCst)
    }
    /// The lane closes, or may: the I/O runtime is gone, and may have had one of its
    /// workers (`block_in_place` on `Backend::Runtime`).
    pub fn lane_may_close(&self, on_rayon: bool) -> bool {
        self.has_begun() || (self.io_dies() && !on_rayon)
    }
    pub fn is_done(&self) -> bool {
        self.done.load(SeqCst)
    }
    pub fn is_over(&self) -> bool {
        self.over.load(SeqCst)
    }
    pub fn set_over(&self) {
        self.over.store(true, SeqCst);
    }

    pub fn kill_io(&self) {
        let runtime = self
            .io
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(runtime) = runtime {
            self.io_dies.store(true, SeqCst);
            runtime.shutdown_background();
        }
    }
}

/// Ends the lane, once; at the latest when it is dropped, which is what happens to
/// a job that was to do it and never ran.
#[derive(Debug)]
pub struct Ending {
    cpu: Option<Arc<CpuRuntime>>,
    form: Form,
    place: Place,
}

impl Ending {
    /// `cpu` is the only one if the form is a drop.
    pub fn new(cpu: Arc<CpuRuntime>, form: Form, place: Place) -> Self {
        Self {
            cpu: Some(cpu),
            form,
            place,
        }
    }

    /// With job `id` something may have to end.
    pub fn look(ledger: &Arc<Ledger>, id: u32) {
        if ledger.plan.io_dies_at == Some(id) {
            ledger.endings.kill_io();
            ledger.want_few_more();
        }
        if ledger.plan.ends_at == Some(id) {
            Self::begin(ledger);
        }
    }

    /// Begins the end of the lane, if it has not begun.
    pub fn begin(ledger: &Arc<Ledger>) {
        let slot = &ledger.endings.lane;
        let ending = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(ending) = ending else { return };
        let ending = OfRound {
            ledger: ledger.clone(),
            ending,
        };
        match ending.ending.place {
            Place::Anywhere => drop(ending.call()),
            Place::IoTask => ledger.aside(ending.run()),
            Place::Thread => {
                let aside = Aside::new(ledger);
                std::thread::spawn(move || {
                    ending.run_here();
                    drop(aside);
                });
            }
            Place::Job => ending.into_job(),
        }
    }
}

/// An ending, with the ledger of its round.
pub struct OfRound {
    ledger: Arc<Ledger>,
    ending: Ending,
}

impl OfRound {
    /// The call. What it gives is to be awaited, or not.
    fn call(mut self) -> Option<(Shutdown, Arc<Ledger>)> {
        let cpu = self.ending.cpu.take()?;
        let endings = &self.ledger.endings;
        endings.begun.store(true, SeqCst);
        let shutdown = match self.ending.form {
            Form::Shutdown | Form::Unawaited => Some(cpu.shutdown()),
            Form::Timeout { micros } => Some(cpu.shutdown_timeout(Duration::from_micros(micros))),
            Form::Background => {
                cpu.shutdown_background();
                None
            }
            Form::Drop => None,
        };
        drop(cpu);
        endings.done.store(true, SeqCst);
        self.ledger.want_few_more();
        shutdown.map(|shutdown| (shutdown, self.ledger.clone()))
    }

    pub async fn run(self) {
        let form = self.ending.form;
        let Some((mut shutdown, ledger)) = self.call() else {
            return;
        };
        match form {
            Form::Unawaited => drop(poll!(&mut shutdown)),
            _ => check(form, shutdown.await, &ledger),
        }
    }

    fn run_here(self) {
        let form = self.ending.form;
        if let Some((shutdown, ledger)) = self.call() {
            if form != Form::Unawaited {
                check(form, shutdown.wait(), &ledger);
            }
        }
    }

    /// In a closure on the lane, which may not wait for itself.
    pub fn run_in_closure(self) {
        drop(self.call());
    }

    fn into_job(self) {
        let waits = matches!(self.ending.form, Form::Shutdown | Form::Timeout { .. });
        let mut rng = Rng::with_seed(self.ledger.plan.jobs.into());
        let ledger = self.ledger.clone();
        let what = What {
            kind: if waits {
                Kind::FutureEndsLane
            } else {
                Kind::EndsLane
            },
            level: rng.usize(..3),
            may_expire: false,
        };
        let extra = Extra::Ending(self);
        // If it does not come to run, its drop does it.
        if let Some(captures) = ledger.enroll(what) {
            if let Some(held) = submit(captures, extra, 0, &mut rng, Way::Direct) {
                held.detach();
            }
        }
    }
}

impl Drop for OfRound {
    fn drop(&mut self) {
        if let Some(cpu) = self.ending.cpu.take() {
            self.ledger.endings.begun.store(true, SeqCst);
            cpu.shutdown_background();
            drop(cpu);
            self.ledger.endings.done.store(true, SeqCst);
            self.ledger.want_few_more();
        }
    }
}

fn check(form: Form, left: Remaining, ledger: &Ledger) {
    let running = ledger.running_closures.load(SeqCst);
    if form == Form::Shutdown && (!left.is_empty() || running > 0) {
        ledger.fail(format!(
            "a shutdown was over with {left:?}, and {running} closures running"
        ));
    }
}
