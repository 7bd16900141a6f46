//! Jobs in every form, and jobs that they submit themselves.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use twolane::Task;

use crate::dice::Dice;
use crate::surroundings::{Done, Item, Round, wait_a_little};
use crate::watchdog::Planned;

type Outcome = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Submits a few jobs, each of which may submit others.
pub(crate) fn tree(round: Arc<Round>, mut dice: Dice, id: u64, depth: u32) -> Outcome {
    Box::pin(async move {
        for n in 0..dice.below(4) {
            let one = one(round.clone(), dice.fork(), id, n, depth);
            one.await;
            wait_a_little(&mut dice).await;
        }
    })
}

async fn one(round: Arc<Round>, mut dice: Dice, id: u64, n: u64, depth: u32) {
    let (mut cpu, limited) = round.at(&mut dice);
    let has_deadline = dice.once_in(4);
    if has_deadline {
        cpu = cpu.with_deadline(deadline(&mut dice));
    }
    let weight = dice.one_of(&[1, 1, 2, 3]);
    let mut done = Done {
        panics: dice.once_in(6).then_some(id),
        needs_permit: limited,
        is_too_large: round
            .limit_of(&cpu)
            .is_some_and(|limit| limit < weight as usize),
        has_deadline,
        ..Done::default()
    };
    let item = round.live.item(n);
    let panics = done.panics;
    let form = dice.below(8);
    // Not where the closure may come back.
    let bomb = (!(3..=6).contains(&form) && dice.once_in(6)).then(|| Bomb(id));
    let closure = move || {
        std::mem::forget(bomb);
        if let Some(id) = panics {
            std::panic::panic_any(Planned(id));
        }
        item
    };
    let future = |closure: Box<dyn FnOnce() -> Item + Send>, dice: &mut Dice| {
        let (round, mut dice) = (round.clone(), dice.fork());
        let goes_deeper = depth < 2 && dice.once_in(2);
        async move {
            wait_a_little(&mut dice).await;
            if goes_deeper {
                tree(round, dice.fork(), id, depth + 1).await;
            }
            twolane::yield_if_due().await;
            closure()
        }
    };
    let task: Task<Item> = match form {
        0..=2 | 7 => {
            // A refused job is dropped here, and a panic of a destructor goes on here.
            let submit = || match form {
                0 => cpu.spawn_cpu(closure),
                1 => cpu.spawn_cpu_with(move |job| {
                    let goes_on = job.checkpoint();
                    let item = closure();
                    goes_on?;
                    Ok(item)
                }),
                2 => cpu.spawn(future(Box::new(closure), &mut dice)),
                _ => cpu.spawn_io(future(Box::new(closure), &mut dice)),
            };
            match catch_unwind(AssertUnwindSafe(submit)) {
                Ok(task) => task,
                Err(payload) => return assert!(payload.is::<Planned>()),
            }
        }
        3 => match cpu.try_spawn_cpu(closure) {
            Ok(task) => task,
            Err(rejected) => {
                let (closure, error) = rejected.into_parts();
                drop(closure);
                return round.check(error, done);
            }
        },
        4 => match cpu.try_spawn(future(Box::new(closure), &mut dice)) {
            Ok(task) => task,
            Err(rejected) => return round.check(rejected.into_parts().1, done),
        },
        5 => match cpu.try_reserve_many(weight) {
            Ok(permit) => permit.spawn_cpu(closure),
            Err(error) => return round.check(error, done),
        },
        _ => {
            let permit = match cpu.reserve_many(weight).await {
                Ok(permit) => permit,
                Err(error) => return round.check(error, done),
            };
            done.has_deadline = true;
            let permit = permit.with_deadline(deadline(&mut dice));
            match dice.once_in(2) {
                true => permit.spawn_cpu(closure),
                false => permit.spawn(future(Box::new(closure), &mut dice)),
            }
        }
    };
    match dice.below(8) {
        0 => drop(task),
        1 => task.detach(),
        2 => {
            wait_a_little(&mut dice).await;
            done.cancelled = true;
            task.abort();
            end(&round, task, n, done).await;
        }
        3 => {
            let abort = task.abort_handle();
            done.cancelled = true;
            let mut dice = dice.fork();
            let give_up = async {
                wait_a_little(&mut dice).await;
                abort.abort();
            };
            futures::join!(end(&round, task, n, done), give_up);
        }
        _ => end(&round, task, n, done).await,
    }
}

/// It has passed, comes soon, or is far ahead.
fn deadline(dice: &mut Dice) -> Instant {
    let micros = dice.one_of(&[0, 300, 3_600_000_000]);
    Instant::now() + Duration::from_micros(micros)
}

/// A capture whose destructor panics, if what holds it never runs.
struct Bomb(u64);

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            std::panic::panic_any(Planned(self.0));
        }
    }
}

async fn end(round: &Round, task: Task<Item>, n: u64, done: Done) {
    match task.await {
        Ok(item) => {
            assert_eq!(item.value, n);
            assert!(done.panics.is_none(), "it ended though it panics");
        }
        Err(error) => round.check(error, done),
    }
}
