//! One lane, from its build to its end.

use std::fs::read_to_string;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use futures::executor::block_on;
use futures::future::join_all;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};
use twolane::metrics::Metrics;
use twolane::{JoinError, JoinErrorKind};

use crate::dice::Dice;
use crate::ending::{Ending, Owner};
use crate::ledger::{Asks, Ledger};
use crate::support::wait::wait_until;
use crate::support::{Lanes, lanes_with};
use crate::surroundings::{Done, Live, PRIORITIES, Round, wait_a_little};
use crate::{bridges, check, jobs, owned, streams, watchdog};

/// The thread on which a unit is driven.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    IoTask,
    Thread,
    /// At a random priority.
    Job,
    SpawnIo,
}

type Unit = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What the units of a round are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kinds {
    Any,
    /// All of the lane's jobs have a record, so its counters are known.
    Jobs,
    Streams,
}

#[derive(Debug)]
struct Plan {
    threads: usize,
    limits: [Option<usize>; 3],
    jobs_of_key: u16,
    units: u64,
    kinds: Kinds,
    /// The lane is shut down after so many units.
    ends: Option<(u64, Ending)>,
    /// The I/O lane's runtime is shut down after so many units.
    io_ends: Option<u64>,
}

impl Plan {
    fn draw(dice: &mut Dice) -> Self {
        let units = 1 + dice.below(16);
        let limit = |dice: &mut Dice| {
            let top = dice.one_of(&[1, 2, 8]);
            dice.once_in(2).then(|| 1 + dice.below(top) as usize)
        };
        Self {
            threads: 1 + dice.below(4) as usize,
            limits: [limit(dice), limit(dice), limit(dice)],
            jobs_of_key: 1 + dice.below(8) as u16,
            units,
            kinds: dice.one_of(&[Kinds::Any, Kinds::Jobs, Kinds::Streams]),
            ends: (!dice.once_in(3)).then(|| (dice.below(units), Ending::draw(dice))),
            io_ends: dice.once_in(8).then(|| dice.below(units)),
        }
    }
}

/// How many jobs there were.
pub(crate) fn run(seed: u64) -> usize {
    let mut dice = Dice::of(seed);
    let plan = Plan::draw(&mut dice);
    // The units' own runtime, which outlives the lanes.
    let mut outer = Builder::new_multi_thread();
    let outer = outer.worker_threads(2).build().unwrap();
    // Lives as long as the lane's memory.
    let token = Arc::new(());
    let of_lane = token.clone();
    let Lanes { cpu, io } = lanes_with(plan.threads, |mut builder| {
        for (priority, limit) in PRIORITIES.into_iter().zip(plan.limits) {
            if let Some(limit) = limit {
                builder = builder.queue_limit(priority, limit);
            }
        }
        let builder = builder.on_thread_start(move || _ = &of_lane);
        // As it is by default.
        builder.short_jobs_first(true)
    });
    let round = Arc::new(Round {
        cpu: cpu.handle().clone(),
        limits: plan.limits,
        jobs_of_key: plan.jobs_of_key,
        ledger: Ledger::default(),
        closing: AtomicBool::new(false),
        is_closed: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
        has_ender: AtomicBool::new(false),
        io_ends: AtomicBool::new(false),
        live: Live::default(),
    });
    watchdog::begin(seed, format!("{plan:?}"), cpu.handle().clone());
    let cpu: Owner = Arc::new(Mutex::new(Some(cpu)));
    let io = Arc::new(Mutex::new(Some(io)));

    watchdog::phase("units");
    let (ended, _) = watch::channel(0);
    let ended = Arc::new(ended);
    let mut all: Vec<Unit> = Vec::new();
    for id in 0..plan.units {
        let unit = drive(
            round.clone(),
            dice.fork(),
            id,
            outer.handle().clone(),
            plan.kinds,
        );
        let ended = ended.clone();
        all.push(Box::pin(async move {
            unit.await;
            ended.send_modify(|n| *n += 1);
        }));
    }
    if let Some((after, ending)) = plan.ends {
        let (round, cpu, ended) = (round.clone(), cpu.clone(), ended.subscribe());
        all.push(Box::pin(async move {
            after_units(after, ended).await;
            ending.run(&round, &cpu).await;
        }));
    }
    if let Some(after) = plan.io_ends {
        let (round, io, ended) = (round.clone(), io.clone(), ended.subscribe());
        all.push(Box::pin(async move {
            after_units(after, ended).await;
            round.io_ends.store(true, SeqCst);
            let io = io.lock().unwrap().take().unwrap();
            io.shutdown_background();
        }));
    }
    let tasks = all.into_iter().map(|unit| outer.spawn(unit));
    let tasks = tasks.collect::<Vec<_>>();
    // A unit's panic is in the watchdog's list.
    block_on(join_all(tasks));

    if !round.may_end() && !round.has_ender.load(SeqCst) {
        watchdog::phase("the permits come back");
        permits_are_back(&round, &plan);
    }
    watchdog::phase("the lane ends");
    round.closing.store(true, SeqCst);
    let owner = cpu.lock().unwrap().take();
    if let Some(cpu) = &owner {
        assert!(cpu.shutdown().wait().is_empty());
        round.is_closed.store(true, SeqCst);
        round.is_over.store(true, SeqCst);
    }
    watchdog::phase("the I/O lane ends");
    // A job of a lane that was dropped may still be in its last step.
    round.io_ends.store(true, SeqCst);
    drop(io.lock().unwrap().take());
    drop(outer);
    watchdog::phase("all that was made is dropped");
    wait_until(|| round.live.0.load(SeqCst) <= 0 && round.ledger.is_closed());
    watchdog::phase("the counters balance");
    // A thread of a dropped lane may still submit a job: a destructor that drops something on the
    // lane. The closed lane ends that job a moment later. If the counters never balance, the
    // watchdog prints them.
    wait_until(|| {
        let mut levels = PRIORITIES
            .iter()
            .map(|level| round.cpu.with_priority(*level));
        levels.all(|lane| is_balanced(&lane.metrics()))
    });
    check::all(&round, plan.kinds == Kinds::Jobs);
    let jobs = round.ledger.records().len();
    drop(owner);
    watchdog::phase("the lane's threads and its memory go");
    watchdog::end();
    drop((round, cpu));
    wait_until(|| !has_lane_thread() && Arc::strong_count(&token) == 1);
    jobs
}

/// (As `/proc` tells: elsewhere there are none.)
fn has_lane_thread() -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let names = tasks.filter_map(|task| read_to_string(task.ok()?.path().join("comm")).ok());
    names.into_iter().any(|name| name.starts_with("cpu-"))
}

/// Nothing is under way, and each job that was submitted has ended once.
fn is_balanced(now: &Metrics) -> bool {
    let ends = check::ends(now);
    assert!(
        ends <= now.submitted,
        "an end without its submission: {now}"
    );
    now.gauges().all(|(_, jobs)| jobs == 0) && now.submitted == ends
}

async fn after_units(after: u64, mut ended: watch::Receiver<u64>) {
    // An error means that the round is over.
    let _ = ended.wait_for(|n| *n >= after).await;
}

/// One unit: made here or where it runs, and run in one of the places.
async fn drive(round: Arc<Round>, mut dice: Dice, id: u64, outer: Handle, kinds: Kinds) {
    wait_a_little(&mut dice).await;
    let places = [
        Place::IoTask,
        Place::Thread,
        Place::SpawnIo,
        Place::Job,
        Place::Job,
    ];
    // A unit that is a job has no record.
    let place = dice.one_of(&places[..if kinds == Kinds::Jobs { 3 } else { 5 }]);
    let made_here = dice.once_in(2);
    let what = What::draw(&mut dice, kinds, id);
    let of_unit = dice.fork();
    let (cpu, limited) = round.at(&mut dice);
    let name = format!(
        "{place:?}, made here: {made_here}, {:?}: {what:?}",
        cpu.priority()
    );
    let _under_way = watchdog::unit(id, name);
    let at = jobs::At {
        round: round.clone(),
        outer,
        id,
        depth: 0,
        may_block: place == Place::Thread,
    };
    let is_bridge = matches!(what, What::Bridge(_));
    let unit: Unit = match made_here {
        true => what.make(at, of_unit),
        false => Box::pin(async move { what.make(at, of_unit).await }),
    };
    let mut done = Done::needs_permit(limited);
    match place {
        Place::IoTask => unit.await,
        Place::Thread => {
            let (alive, ended) = oneshot::channel::<()>();
            std::thread::spawn(move || {
                block_on(unit);
                drop(alive);
            });
            let _ = ended.await;
        }
        Place::SpawnIo => check(&round, cpu.spawn_io(unit).await, done),
        Place::Job => {
            // A bridge from the CPU lane is a job, which has a permit and waits for its
            // reader. The reader must not wait for that permit.
            let task = match is_bridge || dice.once_in(4) {
                true => cpu.spawn(unit),
                false => match cpu.reserve().await {
                    Ok(permit) => permit.spawn(unit),
                    Err(error) => return round.check(error, done),
                },
            };
            if dice.once_in(6) {
                wait_a_little(&mut dice).await;
                done.cancelled = true;
                task.abort();
            }
            check(&round, task.await, done);
        }
    }
}

fn check(round: &Round, outcome: Result<(), JoinError>, done: Done) {
    if let Err(error) = outcome {
        round.check(error, done);
    }
}

/// What a unit does.
#[derive(Debug)]
enum What {
    Stream(streams::Plan),
    Bridge(bridges::Plan),
    SharedValue,
    OwnedValue,
    Jobs,
}

impl What {
    fn draw(dice: &mut Dice, kinds: Kinds, id: u64) -> Self {
        let kind = match kinds {
            Kinds::Any => dice.below(12),
            Kinds::Streams => 0,
            Kinds::Jobs => 11,
        };
        match kind {
            0..=5 => Self::Stream(streams::Plan::draw(dice, id)),
            6 | 7 => Self::Bridge(bridges::Plan::draw(dice, id)),
            8 => Self::SharedValue,
            9 => Self::OwnedValue,
            _ => Self::Jobs,
        }
    }

    fn make(self, at: jobs::At, mut dice: Dice) -> Unit {
        let (round, id) = (at.round.clone(), at.id);
        let (cpu, limited) = round.at(&mut dice);
        match self {
            Self::Stream(plan) => Box::pin(plan.start(&round, &cpu, &at.outer).read(round, dice)),
            Self::Bridge(plan) => Box::pin(plan.start(&round, (cpu, limited)).read(round, dice)),
            Self::SharedValue => Box::pin(owned::shared(round, cpu, limited, dice, id)),
            Self::OwnedValue => Box::pin(owned::owned(round, cpu, dice, id)),
            Self::Jobs => jobs::tree(at, dice),
        }
    }
}

/// Jobs that were detached or cancelled may still be about to end.
fn permits_are_back(round: &Round, plan: &Plan) {
    for (level, limit) in plan.limits.into_iter().enumerate() {
        let lane = round.cpu.with_priority(PRIORITIES[level]);
        wait_until(|| {
            let now = lane.metrics();
            now.gauges().all(|(_, jobs)| jobs == 0) && now.permits_in_use == 0
        });
        if let Some(limit) = limit {
            let permits = (0..limit).map(|_| lane.try_reserve().unwrap());
            let permits: Vec<_> = permits.collect();
            let refused = Asks::new(round, level).answered(lane.try_reserve());
            assert_eq!(refused.unwrap_err().kind(), JoinErrorKind::QueueFull);
            drop(permits);
        }
    }
}
