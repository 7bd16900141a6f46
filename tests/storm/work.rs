//! What the jobs do.

use std::hint::black_box;
use std::pin::Pin;
use std::sync::mpsc;
use std::time::Duration;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use tokio::sync::oneshot;
use twolane::{Cancelled, JobContext};

use crate::dice::Dice;
use crate::jobs::{self, At};
use crate::ledger::{Captures, End};
use crate::surroundings::{Item, wait_a_little};
use crate::watchdog::{Payload, Planned};

#[derive(Debug)]
pub(crate) enum Does {
    Nothing,
    /// Sends what another job waits for, or drops it if it never runs.
    Sends(oneshot::Sender<()>),
    /// A job, and leaves it alone.
    Spawns,
    // Closures alone.
    Computes,
    /// Asks its context again and again.
    Checks,
    /// Keeps its thread until it is let go.
    Holds(mpsc::Receiver<()>),
    WaitsForIo,
    BlocksInPlace,
    UsesRayon,
    PanicsInRayon,
    // Futures alone.
    Yields,
    /// By the timer that a lane's thread has at hand.
    Sleeps,
    SleepsOnIo,
    SpawnsTasks,
    Waits(oneshot::Receiver<()>),
    /// For ever.
    Lasts,
    Tree,
    TreeOnIo,
}

impl Does {
    pub(super) fn of_closure(at: &At, dice: &mut Dice) -> Self {
        match dice.below(30) {
            0..=2 => Does::Computes,
            3..=5 => Does::Checks,
            6 | 7 => {
                let (let_go, wait) = mpsc::channel();
                at.aside(dice.fork(), || drop(let_go));
                Does::Holds(wait)
            }
            8 => Does::WaitsForIo,
            9 => Does::BlocksInPlace,
            10 | 11 => Does::UsesRayon,
            12 => Does::PanicsInRayon,
            13..=15 if at.depth < 2 => Does::Spawns,
            _ => Does::Nothing,
        }
    }

    pub(super) fn of_future(at: &At, dice: &mut Dice) -> Self {
        match dice.below(30) {
            0..=4 => Does::Yields,
            5 => Does::Sleeps,
            6 => Does::SleepsOnIo,
            7 => Does::SpawnsTasks,
            8..=10 => {
                let (send, wait) = oneshot::channel();
                match dice.below(4) {
                    0 => drop(send),
                    // Another job sends it, or drops it if it never runs.
                    1 => jobs::sender(at, dice, send),
                    _ => at.aside(dice.fork(), || _ = send.send(())),
                }
                Does::Waits(wait)
            }
            11 | 12 => Does::Lasts,
            13..=15 if at.depth < 2 => Does::Tree,
            16 if at.depth < 2 => Does::TreeOnIo,
            17..=19 if at.depth < 2 => Does::Spawns,
            _ => Does::Nothing,
        }
    }
}

pub(crate) struct Job {
    pub(crate) captures: Captures,
    pub(crate) at: At,
    pub(crate) dice: Dice,
    pub(crate) does: Does,
    pub(crate) panics: Option<Payload>,
    pub(crate) bomb: Option<Bomb>,
    /// It returns its checkpoint's error.
    pub(crate) obeys: bool,
}

/// A capture whose destructor panics.
pub(crate) struct Bomb(pub(crate) u64);

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            std::panic::panic_any(Planned(self.0));
        }
    }
}

impl Job {
    /// `context`: of a job that is handed one.
    pub(crate) fn run(mut self, context: Option<&JobContext>) -> Result<Item, Cancelled> {
        let mut running = self.captures.begin();
        self.compute(context);
        self.panic_by_plan();
        if let (true, Some(Err(error))) = (self.obeys, context.map(JobContext::checkpoint)) {
            running.ends(End::Checkpoint);
            return Err(error);
        }
        running.ends(End::Output);
        Ok(self.into_output())
    }

    pub(crate) fn future(mut self) -> Pin<Box<dyn Future<Output = Item> + Send>> {
        Box::pin(async move {
            let mut running = self.captures.begin();
            self.proceed().await;
            self.panic_by_plan();
            running.ends(End::Output);
            self.into_output()
        })
    }

    /// The output is made last of all: what becomes of it where a destructor panics behind it is
    /// the compiler's.
    fn into_output(self) -> Item {
        let (live, number) = (self.at.round.live.clone(), self.captures.record.number);
        drop(self);
        live.item(number)
    }

    /// With a payload, or by the destructor of a capture, which is a part of the work.
    fn panic_by_plan(&mut self) {
        if let Some(payload) = self.panics {
            std::mem::forget(self.bomb.take());
            payload.panic(self.at.id);
        }
        match self.bomb.take() {
            Some(bomb) if self.dice.once_in(2) => drop(bomb),
            bomb => std::mem::forget(bomb),
        }
    }

    /// That it is not has to have a reason.
    fn is_wanted(&self, context: &JobContext) -> bool {
        let wanted = context.checkpoint().is_ok();
        let record = &self.captures.record;
        let has_reason = || {
            let asked = record.facts().asked;
            asked || record.what.may_expire || self.at.round.may_end()
        };
        assert!(wanted || has_reason(), "{record:?} is told to end");
        wanted
    }

    fn compute(&mut self, context: Option<&JobContext>) {
        match std::mem::replace(&mut self.does, Does::Nothing) {
            Does::Computes => {
                black_box((0..self.dice.below(10_000)).fold(0, |sum, n| black_box(sum ^ n)));
            }
            Does::Checks => {
                let mut times = 0..self.dice.below(2_000);
                while times.next().is_some() && context.is_none_or(|job| self.is_wanted(job)) {}
            }
            Does::Holds(let_go) => _ = let_go.recv(),
            Does::WaitsForIo => {
                let turns = self.dice.below(4);
                let answer = twolane::spawn_io(async move {
                    for _ in 0..turns {
                        tokio::task::yield_now().await;
                    }
                    turns
                });
                // An error: one of the lanes is gone.
                assert!(answer.wait().is_ok_and(|n| n == turns) || self.at.round.may_end());
            }
            Does::BlocksInPlace => tokio::task::block_in_place(std::thread::yield_now),
            Does::UsesRayon => {
                let n = self.dice.below(64);
                let inputs = (0..n).into_par_iter().map(|n| {
                    let _ = context.is_some_and(|job| job.checkpoint().is_err());
                    n
                });
                let (sum, one) = rayon::join(|| inputs.sum::<u64>(), || 1);
                assert_eq!((sum, one), (n * n.saturating_sub(1) / 2, 1));
            }
            Does::PanicsInRayon => {
                let id = self.at.id;
                std::mem::forget(self.bomb.take());
                let panics = || std::panic::panic_any(Planned(id));
                rayon::join(|| rayon::join(|| black_box(1), panics), || black_box(2));
            }
            Does::Spawns => jobs::child(&self.at, &mut self.dice),
            Does::Sends(send) => _ = send.send(()),
            other => assert!(matches!(other, Does::Nothing), "{other:?} in a closure"),
        }
    }

    async fn proceed(&mut self) {
        let micros = Duration::from_micros(self.dice.below(1_500));
        match std::mem::replace(&mut self.does, Does::Nothing) {
            Does::Yields => {
                for _ in 0..=self.dice.below(4) {
                    match self.dice.below(3) {
                        0 => tokio::task::yield_now().await,
                        1 => twolane::yield_now().await,
                        _ => twolane::yield_if_due().await,
                    }
                }
            }
            Does::Sleeps => tokio::time::sleep(micros).await,
            // An error, here and below: one of the lanes is gone.
            Does::SleepsOnIo => drop(twolane::spawn_io(tokio::time::sleep(micros)).await),
            Does::SpawnsTasks => {
                let spawns = async { drop(tokio::spawn(tokio::task::yield_now()).await) };
                let has_runtime = !self.captures.record.what.is_on_io;
                match has_runtime && self.dice.once_in(2) {
                    true => twolane::in_cpu_context(spawns).await,
                    false => spawns.await,
                }
            }
            Does::Waits(wait) => drop(wait.await),
            Does::Lasts => std::future::pending().await,
            Does::Tree => jobs::tree(self.at.deeper(), self.dice.fork()).await,
            Does::TreeOnIo => {
                let tree = jobs::tree(self.at.deeper(), self.dice.fork());
                drop(twolane::spawn_io(tree).await);
            }
            Does::Spawns => jobs::child(&self.at, &mut self.dice),
            Does::Sends(send) => _ = send.send(()),
            other => assert!(matches!(other, Does::Nothing), "{other:?} in a future"),
        }
        wait_a_little(&mut self.dice).await;
        twolane::yield_if_due().await;
    }
}
