//! Does a queue's limit bound what is in memory, and not only what may still run?
//!
//! Once, a job that was cancelled in the queue gave its place back at once, while
//! its entry, and all that it had captured, stayed in the queue until a thread came
//! to take it out. On a lane whose threads are all busy, a client that submits and
//! gives up (a request handler with a timeout) came in again and again by the same
//! place: memory grew with the number of attempts, at any limit. So a place belongs
//! to the entry: it is free when the captures are gone. A job that returns its place
//! where it tells its awaiter brings the growth back.

use std::sync::Arc;

use crate::support::{Lanes, Stuck, lanes_with, with_both};
use futures::FutureExt;
use twolane::{Backend, Handle, Permit, Priority};

const LIMIT: usize = 16;
const THREADS: usize = 2;
const ATTEMPTS: usize = 2_000;

fn limited(backend: Backend) -> Lanes {
    lanes_with(backend, THREADS, |builder| {
        builder.queue_limit(Priority::Normal, LIMIT)
    })
}

fn is_full(cpu: &Handle) -> bool {
    cpu.try_reserve().is_err_and(|error| error.is_queue_full())
}

/// Every thread sits in a closure until its job is let go.
fn block(cpu: &Handle) -> Vec<Stuck<()>> {
    (0..THREADS).map(|_| Stuck::start(cpu)).collect()
}

fn release(blocked: Vec<Stuck<()>>) {
    blocked.into_iter().for_each(Stuck::end);
}

/// Jobs that are awaited go through the queue, and so past all that is in it.
fn run_a_job(cpu: &Handle) {
    let permit = cpu.reserve().wait().unwrap();
    permit.spawn_cpu(|| ()).wait().unwrap();
}

fn gives_up_again_and_again(backend: Backend, what: &str, attempt: Attempt) {
    let lanes = limited(backend);
    let cpu = lanes.cpu.handle();
    let captured = Arc::new(());
    // The one here is no job's.
    let alive = || Arc::strong_count(&captured) - 1;

    let blocked = block(&cpu);
    let mut most = 0;
    for _ in 0..ATTEMPTS {
        attempt(&cpu, captured.clone());
        most = most.max(alive());
    }
    assert!(most > 0, "{what}: no attempt came in");
    assert!(
        most <= LIMIT,
        "{what}: {most} captures at a limit of {LIMIT}"
    );

    release(blocked);
    while alive() > 0 {
        run_a_job(&cpu);
    }
    let all_places =
        || -> Result<Vec<Permit>, _> { (0..LIMIT).map(|_| cpu.try_reserve()).collect() };
    let places = loop {
        match all_places() {
            Ok(places) => break places,
            Err(_) => run_a_job(&cpu),
        }
    };
    assert!(is_full(&cpu), "{what}: a place too many");
    drop(places);
}

/// Submits a job that holds the capture, if there is a place, and gives up at once.
type Attempt = fn(&Handle, Arc<()>);

const ATTEMPTED: [(&str, Attempt); 4] = [
    ("try_spawn_cpu", |cpu, captured| {
        drop(cpu.try_spawn_cpu(move || drop(captured)));
    }),
    ("try_spawn", |cpu, captured| {
        drop(cpu.try_spawn(async move { drop(captured) }));
    }),
    ("reserve, closure", |cpu, captured| {
        if let Some(permit) = cpu.reserve().now_or_never() {
            drop(permit.unwrap().spawn_cpu(move || drop(captured)));
        }
    }),
    ("reserve, future", |cpu, captured| {
        if let Some(permit) = cpu.reserve().now_or_never() {
            drop(permit.unwrap().spawn(async move { drop(captured) }));
        }
    }),
];

#[test]
fn jobs_that_are_given_up_stay_within_the_limit() {
    with_both(|backend| {
        for (what, attempt) in ATTEMPTED {
            gives_up_again_and_again(backend, what, attempt);
        }
    });
}

/// The awaiter does not wait for the place: it learns of the cancel while no thread
/// is there to take the entry out of the queue. A client that asks for a place is told
/// that the queue is full until that has happened.
#[test]
fn an_awaiter_is_told_of_a_cancel_before_the_place_is_free() {
    with_both(|backend| {
        let lanes = limited(backend);
        let cpu = lanes.cpu.handle();
        let blocked = block(&cpu);
        let mut queued: Vec<_> = (THREADS..LIMIT)
            .map(|n| match n % 2 {
                0 => cpu.try_spawn_cpu(|| ()).unwrap(),
                _ => cpu.try_spawn(async {}).unwrap(),
            })
            .collect();
        assert!(is_full(&cpu));
        for task in &mut queued {
            task.abort();
            let told = task.now_or_never().expect("an end that is told at once");
            assert!(told.unwrap_err().is_cancelled());
            assert!(is_full(&cpu), "its entry is in the queue");
        }
        let mut next = Box::pin(cpu.reserve());
        assert!((&mut next).now_or_never().is_none());
        release(blocked);
        // A place comes when a thread takes the entries out.
        drop(lanes.io.block_on(next).unwrap());
        while is_full(&cpu) {
            run_a_job(&cpu);
        }
        assert_eq!(cpu.metrics().cancelled, (LIMIT - THREADS) as u64);
    });
}
