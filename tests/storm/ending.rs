//! The end of a round's lane: in any form, from anywhere, at any moment.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use twolane::CpuRuntime;
use twolane::future::Shutdown;

use crate::dice::Dice;
use crate::surroundings::Round;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Shutdown,
    /// The future of `shutdown` is dropped.
    NotAwaited,
    Timeout(Duration),
    Background,
    Drop,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Task,
    Thread,
    /// A closure on the lane, or a future on it.
    Closure,
    Future,
}

pub(crate) type Owner = Arc<Mutex<Option<CpuRuntime>>>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    form: Form,
    place: Place,
}

impl Ending {
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        let millis = dice.one_of(&[0, 1, 60_000]);
        Self {
            form: dice.one_of(&[
                Form::Shutdown,
                Form::NotAwaited,
                Form::Timeout(Duration::from_millis(millis)),
                Form::Background,
                Form::Drop,
            ]),
            place: dice.one_of(&[Place::Task, Place::Thread, Place::Closure, Place::Future]),
        }
    }

    pub(crate) async fn run(self, round: &Arc<Round>, owner: &Owner) {
        let ends = Ends {
            form: self.form,
            round: round.clone(),
            owner: Some(owner.clone()),
        };
        match self.place {
            Place::Task => ends.and_wait().await,
            Place::Thread => std::thread::spawn(move || ends.at_once()).join().unwrap(),
            Place::Closure | Place::Future => {
                round.has_ender.store(true, SeqCst);
                match self.place {
                    Place::Closure => round.cpu.spawn_cpu(move || ends.at_once()).detach(),
                    _ => round.cpu.spawn(ends.and_wait()).detach(),
                }
            }
        }
    }
}

/// Ends the lane, once: at the latest when it is dropped, which is what happens to a job that was
/// to do it and never ran.
struct Ends {
    form: Form,
    round: Arc<Round>,
    owner: Option<Owner>,
}

impl Ends {
    fn call(&mut self) -> Option<Shutdown> {
        let owner = self.owner.take()?;
        self.round.closing.store(true, SeqCst);
        let mut owner = owner.lock().unwrap();
        let shutdown = match (self.form, &*owner) {
            (_, None) => None,
            (Form::Shutdown | Form::NotAwaited, Some(cpu)) => Some(cpu.shutdown()),
            (Form::Timeout(limit), Some(cpu)) => Some(cpu.shutdown_timeout(limit)),
            (Form::Background, Some(cpu)) => {
                cpu.shutdown_background();
                None
            }
            (Form::Drop, Some(_)) => {
                drop(owner.take());
                None
            }
        };
        self.round.is_closed.store(true, SeqCst);
        shutdown
    }

    async fn and_wait(mut self) {
        let Some(shutdown) = self.call() else { return };
        match self.form {
            Form::Shutdown => {
                let left = shutdown.await;
                let running = self.round.ledger.running_closures.load(SeqCst);
                let is_whole = left.is_empty() && running == 0;
                assert!(is_whole, "{running} closures run on: {left:?}");
            }
            Form::Timeout(_) => drop(shutdown.await),
            _ => drop(shutdown),
        }
    }

    /// Without a wait: a closure must not wait for its own lane.
    fn at_once(mut self) {
        drop(self.call());
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        drop(self.call());
    }
}
