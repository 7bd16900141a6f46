//! One lane, from its build to its end.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::executor::block_on;
use futures::future::join_all;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};
use twolane::metrics::Metrics;
use twolane::{Backend, CpuRuntime, JoinError};

use crate::dice::Dice;
use crate::surroundings::{Done, Live, PRIORITIES, Round, wait_a_little};
use crate::{bridges, jobs, owned, streams, watchdog};

type Unit = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Clone, Copy, Debug)]
enum Form {
    Shutdown,
    /// The future of `shutdown` is dropped.
    NotAwaited,
    Timeout(Duration),
    Background,
    Drop,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    IoTask,
    Thread,
    /// At a random priority.
    Job,
    SpawnIo,
}

#[derive(Debug)]
struct Plan {
    backend: Backend,
    threads: usize,
    has_scout: bool,
    wakes_by_driver: bool,
    limits: [Option<usize>; 3],
    units: u64,
    /// The lane is shut down after so many units.
    ends: Option<(u64, Form, Place)>,
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
        let millis = dice.one_of(&[0, 1, 60_000]);
        let forms = [
            Form::Shutdown,
            Form::NotAwaited,
            Form::Timeout(Duration::from_millis(millis)),
            Form::Background,
            Form::Drop,
        ];
        Self {
            backend: dice.one_of(&[Backend::Rayon, Backend::Runtime]),
            threads: 1 + dice.below(4) as usize,
            has_scout: dice.once_in(3),
            wakes_by_driver: dice.once_in(2),
            limits: [limit(dice), limit(dice), limit(dice)],
            units,
            ends: (!dice.once_in(3)).then(|| {
                let place = dice.one_of(&[Place::IoTask, Place::Thread, Place::Job]);
                (dice.below(units), dice.one_of(&forms), place)
            }),
            io_ends: dice.once_in(8).then(|| dice.below(units)),
        }
    }
}

pub(crate) fn run(seed: u64) {
    let mut dice = Dice::of(seed);
    let plan = Plan::draw(&mut dice);
    // The units' own runtime, which outlives the lanes.
    let outer = Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let io = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let mut builder = CpuRuntime::builder()
        .backend(plan.backend)
        .worker_threads(plan.threads)
        .thread_name("storm")
        .io_handle(io.handle().clone());
    if plan.has_scout {
        builder = builder.enable_scout();
    }
    if plan.wakes_by_driver {
        builder = builder.enable_driver_wakeups();
    }
    for (priority, limit) in PRIORITIES.into_iter().zip(plan.limits) {
        if let Some(limit) = limit {
            builder = builder.queue_limit(priority, limit);
        }
    }
    let cpu = builder.build().unwrap();
    let round = Arc::new(Round {
        cpu: cpu.handle(),
        limits: plan.limits,
        closing: AtomicBool::new(false),
        io_ends: AtomicBool::new(false),
        live: Live::default(),
    });
    watchdog::begin(seed, format!("{plan:?}"), cpu.handle());
    let cpu = Arc::new(Mutex::new(Some(cpu)));
    let io = Arc::new(Mutex::new(Some(io)));

    watchdog::phase("units");
    let (ended, _) = watch::channel(0);
    let ended = Arc::new(ended);
    let mut all: Vec<Unit> = Vec::new();
    for id in 0..plan.units {
        let unit = drive(round.clone(), dice.fork(), id, outer.handle().clone());
        let ended = ended.clone();
        all.push(Box::pin(async move {
            unit.await;
            ended.send_modify(|n| *n += 1);
        }));
    }
    if let Some((after, form, place)) = plan.ends {
        let (round, cpu, ended) = (round.clone(), cpu.clone(), ended.subscribe());
        all.push(Box::pin(async move {
            after_units(after, ended).await;
            end_lane(&round, &cpu, form, place).await;
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

    if !round.closing.load(SeqCst) && !round.io_ends.load(SeqCst) {
        watchdog::phase("the permits come back");
        permits_are_back(&round, &plan);
    }
    watchdog::phase("the lane ends");
    round.closing.store(true, SeqCst);
    let owner = cpu.lock().unwrap().take();
    if let Some(cpu) = &owner {
        assert!(cpu.shutdown().wait().is_empty());
    }
    watchdog::phase("the I/O lane ends");
    // A job of a lane that was dropped may still be in its last step.
    round.io_ends.store(true, SeqCst);
    drop(io.lock().unwrap().take());
    drop(outer);
    watchdog::phase("all that was made is dropped");
    while round.live.0.load(SeqCst) > 0 {
        std::thread::yield_now();
    }
    watchdog::phase("the counters balance");
    // A thread of a dropped lane may still submit a job: a destructor that drops something on the
    // lane. The closed lane ends that job a moment later. If the counters never balance, the
    // watchdog prints them.
    for priority in PRIORITIES {
        let lane = round.cpu.with_priority(priority);
        while !is_balanced(&lane.metrics()) {
            std::thread::yield_now();
        }
    }
    drop(owner);
    watchdog::end();
}

/// Nothing is under way, and each job that was submitted has ended once.
fn is_balanced(now: &Metrics) -> bool {
    let ends = now.completed + now.panicked + now.cancelled + now.expired + now.dropped;
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
async fn drive(round: Arc<Round>, mut dice: Dice, id: u64, outer: Handle) {
    wait_a_little(&mut dice).await;
    let place = dice.one_of(&[
        Place::IoTask,
        Place::Thread,
        Place::Job,
        Place::Job,
        Place::SpawnIo,
    ]);
    let made_here = dice.once_in(2);
    let (kind, mut of_unit) = (dice.below(6), dice.fork());
    let (cpu, limited) = round.at(&mut dice);
    let name = match kind {
        0..=2 => format!("{:?}", streams::Plan::draw(&mut of_unit, id)),
        3 => format!("{:?}", bridges::Plan::draw(&mut of_unit, id)),
        _ => String::from(["values on the I/O lane", "jobs"][kind as usize - 4]),
    };
    let name = format!(
        "{place:?}, made here: {made_here}, {:?}: {name}",
        cpu.priority()
    );
    let _under_way = watchdog::unit(id, name);
    let unit: Unit = match made_here {
        true => make(round.clone(), of_unit, kind, id, outer),
        false => {
            let round = round.clone();
            Box::pin(async move { make(round, of_unit, kind, id, outer).await })
        }
    };
    let mut done = Done {
        needs_permit: limited,
        ..Done::default()
    };
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
            let task = match kind == 3 || dice.once_in(4) {
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

fn make(round: Arc<Round>, mut dice: Dice, kind: u64, id: u64, outer: Handle) -> Unit {
    let (cpu, limited) = round.at(&mut dice);
    match kind {
        0..=2 => {
            let plan = streams::Plan::draw(&mut dice, id);
            Box::pin(plan.start(&round, &cpu, &outer).read(round, dice))
        }
        3 => {
            let plan = bridges::Plan::draw(&mut dice, id);
            Box::pin(plan.start(&round, (cpu, limited)).read(round, dice))
        }
        4 if dice.once_in(2) => Box::pin(owned::shared(round, cpu, limited, dice, id)),
        4 => Box::pin(owned::owned(round, cpu, dice, id)),
        _ => jobs::tree(round, dice, id, 0),
    }
}

type Owner = Arc<Mutex<Option<CpuRuntime>>>;

async fn end_lane(round: &Arc<Round>, cpu: &Owner, form: Form, place: Place) {
    let handle = round.cpu.clone();
    round.closing.store(true, SeqCst);
    match place {
        Place::IoTask | Place::SpawnIo => {
            let ends = match (form, &*cpu.lock().unwrap()) {
                (Form::Shutdown, Some(cpu)) => Some(cpu.shutdown()),
                (Form::Timeout(limit), Some(cpu)) => Some(cpu.shutdown_timeout(limit)),
                _ => None,
            };
            match ends {
                Some(ends) => drop(ends.await),
                None => end_at_once(cpu, form),
            }
        }
        Place::Thread => {
            let cpu = cpu.clone();
            let thread = std::thread::spawn(move || end_at_once(&cpu, form));
            thread.join().unwrap();
        }
        Place::Job => {
            let job = {
                let cpu = cpu.clone();
                move || end_at_once(&cpu, form)
            };
            // If the queue is full, here.
            if let Err(rejected) = handle.try_spawn_cpu(job).map(|task| task.detach()) {
                rejected.into_inner()();
            }
        }
    }
}

/// Ends the lane without a wait.
fn end_at_once(owner: &Owner, form: Form) {
    let mut owner = owner.lock().unwrap();
    if let Form::Drop = form {
        let dropped = owner.take();
        return drop(dropped);
    }
    let Some(cpu) = &*owner else {
        return;
    };
    match form {
        Form::Background => cpu.shutdown_background(),
        Form::Timeout(limit) => drop(cpu.shutdown_timeout(limit)),
        _ => drop(cpu.shutdown()),
    }
}

/// Jobs that were detached or cancelled may still be about to end.
fn permits_are_back(round: &Round, plan: &Plan) {
    for (priority, limit) in PRIORITIES.into_iter().zip(plan.limits) {
        let lane = round.cpu.with_priority(priority);
        let busy = |lane: &twolane::Handle| lane.metrics().gauges().any(|(_, jobs)| jobs > 0);
        while busy(&lane) || lane.metrics().permits_in_use > 0 {
            std::thread::yield_now();
        }
        if let Some(limit) = limit {
            let permits = (0..limit).map(|_| lane.try_reserve().unwrap());
            let permits: Vec<_> = permits.collect();
            assert!(lane.try_reserve().unwrap_err().is_queue_full());
            drop(permits);
        }
    }
}
