//! One round: a fresh lane, its jobs, its end, and the checks.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use futures::future::join_all;
use tokio::runtime::Runtime;

use super::Soak;
use super::check;
use super::ending::{Ending, Endings};
use super::ledger::{Ledger, Seen};
use super::plan::{Form, PRIORITIES, Plan};
use super::process;
use super::submitter::Submitter;
use super::tally::Tally;

/// How it went, and what did not.
pub fn run(soak: &Soak, number: u64) -> (Tally, Vec<String>) {
    let threads_before = process::thread_names();
    let mut rng = Rng::with_seed(soak.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let plan = Plan::draw(&mut rng, number, &soak.backends, soak.jobs_per_round);
    let own_io = plan.own_io.then(|| io_runtime(&mut rng));
    let io_of_lane = own_io.as_ref().unwrap_or(&soak.io).handle().clone();

    // Lives as long as the lane's memory.
    let token = Arc::new(());
    let cpu = Arc::new(plan.build(&io_of_lane, token.clone()));
    let handles = PRIORITIES.map(|priority| cpu.handle().with_priority(priority));
    let owner = (plan.form != Form::Drop).then(|| cpu.clone());
    let endings = Endings::new(Ending::new(cpu, plan.form, plan.place), own_io);
    let ledger = Ledger::new(
        soak.seed,
        plan,
        handles,
        soak.io.handle().clone(),
        soak.watchdog.clone(),
        endings,
    );
    soak.watchdog.look_at(&ledger);

    submit_all(soak, &ledger, &io_of_lane, &mut rng);
    if ledger.plan.ends_at.is_none() {
        // Not only when the lane ends: what was cancelled goes soon.
        wait_until(&ledger, "captures of jobs that have ended", || {
            let has_ended = |seen| !matches!(seen, Seen::Nothing | Seen::Detached);
            let mut ended = ledger.records().iter().filter(|r| has_ended(r.seen()));
            ended.all(|record| record.captures_dropped.load(SeqCst) > 0)
        });
    }
    Ending::begin(&ledger);
    wait_until(&ledger, "what goes on by the side", || {
        ledger.asides.load(SeqCst) == 0
    });
    if let Some(cpu) = owner {
        let left = soak.io.block_on(cpu.shutdown());
        if !left.is_empty() {
            ledger.fail(format!("after the shutdown this was left: {left:?}"));
        }
        ledger.endings.set_over();
        check::all(&ledger);
        drop(cpu);
    }
    ledger.endings.kill_io();
    wait_until(&ledger, "the threads of the round", || {
        let threads = process::thread_names();
        // Not the number alone: a thread that an earlier round has left in the I/O
        // runtime's pool may have ended in place of the lane's.
        let of_lane = |name: &String| name.starts_with("lane-");
        threads.len() <= threads_before.len() && !threads.iter().any(of_lane)
    });
    if ledger.plan.form == Form::Drop {
        ledger.endings.set_over();
        check::all(&ledger);
    }

    let tally = Tally::of(&ledger);
    let mut failures = ledger.take_failures();
    let describe = format!("{:?}", ledger.plan);
    if !comes_true(|| Arc::strong_count(&ledger) == 1) {
        failures.push("something holds the round's table still".to_owned());
    }
    drop(ledger);
    if !comes_true(|| Arc::strong_count(&token) == 1) {
        failures.push("the lane's memory was not let go".to_owned());
    }
    if !failures.is_empty() {
        failures.insert(0, describe);
    }
    (tally, failures)
}

fn io_runtime(rng: &mut Rng) -> Runtime {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(rng.usize(1..=2))
        .thread_name("own-io")
        .enable_time()
        .build();
    runtime.expect("an I/O runtime")
}

/// Until each of the submitters has its answers, or was dropped with its runtime.
fn submit_all(soak: &Soak, ledger: &Arc<Ledger>, own_io: &tokio::runtime::Handle, rng: &mut Rng) {
    let plan = &ledger.plan;
    let mut submitter = |may_wait| Submitter::new(ledger, rng.fork(), may_wait).run();
    let threads: Vec<_> = (0..plan.on_threads)
        .map(|_| {
            let submitter = submitter(true);
            thread::spawn(move || futures::executor::block_on(submitter))
        })
        .collect();
    let tasks = (0..plan.tasks).map(|_| soak.io.spawn(submitter(false)));
    let mut tasks: Vec<_> = tasks.collect();
    tasks.extend((0..plan.tasks_on_own_io).map(|_| own_io.spawn(submitter(false))));
    for ended in soak.io.block_on(join_all(tasks)) {
        if ended.is_err_and(|error| error.is_panic()) {
            ledger.fail("a submitter panicked");
        }
    }
    for thread in threads {
        if thread.join().is_err() {
            ledger.fail("a submitter panicked");
        }
    }
}

/// No event tells of these conditions, so this polls them.
fn comes_true(is_so: impl Fn() -> bool) -> bool {
    (0..20_000).any(|n| {
        let so = is_so();
        if !so && n > 100 {
            thread::sleep(Duration::from_millis(1));
        } else if !so {
            thread::yield_now();
        }
        so
    })
}

fn wait_until(ledger: &Ledger, what: &str, is_so: impl Fn() -> bool) {
    if !comes_true(is_so) {
        let threads = process::thread_names();
        ledger.fail(format!("{what} did not end; threads: {threads:?}"));
    }
}
