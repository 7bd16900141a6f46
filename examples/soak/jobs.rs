//! What the jobs do, kind by kind.

use std::hint::black_box;
use std::pin::Pin;
use std::time::Duration;

use fastrand::Rng;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use twolane::JobContext;

use super::captures::{Answer, Captures};
use super::held::Held;
use super::kinds::Kind;
use super::ledger::{Aside, What};
use super::panics::panic_with;
use super::submit::{Extra, Way, equip, submit};

pub struct Job {
    pub captures: Captures,
    pub kind: Kind,
    pub extra: Extra,
    pub depth: u8,
    pub rng: Rng,
}

pub type Boxed = Pin<Box<dyn Future<Output = Answer> + Send>>;

impl Job {
    /// `context`: of a job that was handed one.
    pub fn run(mut self, context: Option<&JobContext>) -> Answer {
        let mut running = self.captures.begin();
        let child = self.compute(context);
        running.finished();
        drop(self);
        running.answer(child)
    }

    /// Boxed, as such a future has others of its kind within.
    pub fn future(mut self) -> Boxed {
        Box::pin(async move {
            let mut running = self.captures.begin();
            self.proceed().await;
            running.finished();
            drop(self);
            running.answer(None)
        })
    }

    fn extra(&mut self) -> Extra {
        std::mem::replace(&mut self.extra, Extra::None)
    }

    fn compute(&mut self, context: Option<&JobContext>) -> Option<Held> {
        let id = self.captures.id;
        match self.kind {
            Kind::Compute => {
                black_box((0..self.rng.u64(..10_000)).fold(0, |sum, n| black_box(sum ^ n)));
            }
            Kind::Panics(payload) => panic_with(payload, id),
            Kind::Checkpoint => {
                for _ in 0..self.rng.u16(..2_000) {
                    if !self.captures.is_wanted(context) {
                        break;
                    }
                    std::hint::spin_loop();
                }
            }
            Kind::Hold => {
                if let Extra::Hold(hold) = self.extra() {
                    let _ = hold.recv();
                }
            }
            Kind::WaitsForIo => self.wait_for_io(),
            Kind::BlocksInPlace => tokio::task::block_in_place(std::thread::yield_now),
            Kind::Rayon => self.use_rayon(context),
            Kind::RayonPanics => {
                let panics = || panic_with(super::kinds::Payload::Value, id);
                rayon::join(|| rayon::join(|| black_box(1), panics), || black_box(2));
            }
            Kind::SpawnsChild => return self.spawn_child(),
            Kind::Releases => {
                if let Extra::Send(send) = self.extra() {
                    let _ = send.send(());
                }
            }
            Kind::EndsLane => {
                if let Extra::Ending(ending) = self.extra() {
                    ending.run_in_closure();
                }
            }
            _ => {}
        }
        None
    }

    fn wait_for_io(&mut self) {
        let aside = Aside::new(&self.captures.ledger);
        let turns = self.rng.u8(..4);
        let waited = twolane::spawn_io(async move {
            let _aside = aside;
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            turns
        });
        if waited.wait().is_ok_and(|said| said != turns) {
            self.captures
                .ledger
                .fail("the I/O lane said something else");
        }
    }

    fn use_rayon(&mut self, context: Option<&JobContext>) {
        let n = self.rng.u64(1..64);
        let captures = &self.captures;
        let sum = (0..n).into_par_iter().map(|n| {
            captures.is_wanted(context);
            n
        });
        let (sum, (one, two)) = rayon::join(
            || sum.sum::<u64>(),
            || rayon::join(|| captures.id, || captures.id),
        );
        if sum != n * (n - 1) / 2 || one != two {
            let id = captures.id;
            captures
                .ledger
                .fail(format!("job {id}: rayon computed {sum} for {n}"));
        }
    }

    /// A job of this one's.
    fn child(&mut self) -> Option<Held> {
        let (ledger, depth) = (self.captures.ledger.clone(), self.depth + 1);
        let kind = Kind::draw(&mut self.rng, depth, ledger.plan.on_rayon());
        let what = What {
            // Nothing would end these two.
            kind: match kind {
                Kind::Forever => Kind::Ready,
                Kind::Hold => Kind::Tiny,
                kind => kind,
            },
            level: self.rng.usize(..3),
            may_expire: false,
        };
        let (extra, _) = equip(&ledger, what.kind, depth, &mut self.rng);
        let way = if self.rng.bool() {
            Way::Direct
        } else {
            Way::Try
        };
        submit(ledger.enroll(what)?, extra, depth, &mut self.rng, way)
    }

    fn spawn_child(&mut self) -> Option<Held> {
        let held = self.child()?;
        match self.rng.u8(..4) {
            0 => held.detach(),
            1 => drop(held),
            _ => return Some(held),
        }
        None
    }

    async fn proceed(&mut self) {
        let id = self.captures.id;
        match self.kind {
            Kind::Yields => self.give_way().await,
            Kind::IoSleep => {
                let aside = Aside::new(&self.captures.ledger);
                let nap = Duration::from_micros(self.rng.u64(..1_500));
                let slept = twolane::spawn_io(async move {
                    let _aside = aside;
                    tokio::time::sleep(nap).await;
                });
                // An error: one of the lanes is gone.
                drop(slept.await);
            }
            Kind::LaneSleep => {
                tokio::time::sleep(Duration::from_micros(self.rng.u64(..1_500))).await;
            }
            Kind::TokioSpawn => {
                let spawns = async { drop(tokio::spawn(tokio::task::yield_now()).await) };
                if self.captures.ledger.plan.on_rayon() || self.rng.bool() {
                    spawns.await;
                } else {
                    // Beside the jobs.
                    twolane::in_cpu_context(spawns).await;
                }
            }
            Kind::Channel => {
                if let Extra::Wait(wait) = self.extra() {
                    // An error: the sender is gone.
                    let _ = wait.await;
                }
            }
            Kind::Messages => {
                if let Extra::Messages(mut messages) = self.extra() {
                    while messages.recv().await.is_some() {}
                }
            }
            Kind::FuturePanics(payload) => {
                if self.rng.bool() {
                    self.give_way().await;
                }
                panic_with(payload, id);
            }
            Kind::FuturesCapturesPanic if self.rng.bool() => self.give_way().await,
            Kind::Forever => {
                // So that many a lane closes in the middle of such a step.
                for _ in 0..self.rng.u32(..20_000) {
                    std::hint::spin_loop();
                }
                std::future::pending().await
            }
            Kind::Children => self.have_children().await,
            Kind::IoSpawnsCpu => {
                if let Some(held) = self.child() {
                    let aside = Aside::new(&self.captures.ledger);
                    let settled = twolane::spawn_io(async move {
                        let _aside = aside;
                        held.settle().await;
                    });
                    drop(settled.await);
                }
                self.spawn_from_io().await;
            }
            Kind::FutureEndsLane => {
                if let Extra::Ending(ending) = self.extra() {
                    ending.run().await;
                }
            }
            _ => {}
        }
    }

    async fn give_way(&mut self) {
        for _ in 0..self.rng.u8(1..5) {
            match self.rng.u8(..3) {
                0 => tokio::task::yield_now().await,
                1 => twolane::yield_now().await,
                _ => twolane::yield_if_due().await,
            }
        }
    }

    async fn have_children(&mut self) {
        let mut held = Vec::new();
        for _ in 0..self.rng.u8(1..=4) {
            held.extend(self.child());
        }
        for child in held {
            match self.rng.u8(..8) {
                0 => drop(child),
                1 => child.detach(),
                2 => child.poll_and_drop().await,
                3 => {
                    child.abort();
                    child.settle().await;
                }
                _ => child.settle().await,
            }
        }
    }

    /// Submits from a future that this job gives to the I/O lane: that needs no permit either.
    async fn spawn_from_io(&mut self) {
        let ledger = self.captures.ledger.clone();
        let aside = Aside::new(&ledger);
        let mut rng = self.rng.fork();
        let depth = self.depth + 1;
        let spawned = twolane::spawn_io(async move {
            let _aside = aside;
            let what = What {
                kind: if rng.bool() { Kind::Tiny } else { Kind::Yields },
                level: rng.usize(..3),
                may_expire: false,
            };
            if let Some(captures) = ledger.enroll(what) {
                if let Some(held) = submit(captures, Extra::None, depth, &mut rng, Way::Direct) {
                    held.settle().await;
                }
            }
        });
        drop(spawned.await);
    }
}
