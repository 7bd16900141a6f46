//! `run_cpu`: where is the closure computed, and is that the same to its awaiter?

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::executor::block_on;
use futures::stream::FuturesUnordered;
use twolane::{Handle, JoinError, Priority};

use crate::computing::compute_for;
use crate::support::{BOTH, Stuck, lanes, lanes_with, on_both, time_limit};

/// Until it is computed on this thread.
fn until_in_place(cpu: &Handle) {
    let me = thread::current().id();
    while block_on(cpu.run_cpu(|| thread::current().id())).ok() != Some(me) {}
}

fn here_or_there(cpu: &Handle, time: Duration) -> ThreadId {
    let site = cpu.run_cpu(move || {
        compute_for(time);
        thread::current().id()
    });
    block_on(site).unwrap()
}

#[test]
fn a_site_begins_on_the_lane_and_its_small_closures_come_in_place() {
    on_both(1, |lanes| {
        let cpu = lanes.cpu.handle().with_name("small");
        for _ in 0..16 {
            assert_ne!(here_or_there(&cpu, Duration::ZERO), thread::current().id());
        }
        until_in_place(&cpu);
        // What is learned belongs to the site.
        let other = lanes.cpu.handle().with_name("another");
        assert_ne!(
            here_or_there(&other, Duration::ZERO),
            thread::current().id()
        );
    });
}

#[test]
fn long_closures_stay_on_the_lane() {
    on_both(1, |lanes| {
        let cpu = lanes.cpu.handle().with_name("long");
        for _ in 0..100 {
            let there = here_or_there(&cpu, Duration::from_micros(60));
            assert_ne!(there, thread::current().id());
        }
    });
}

/// A site whose closures turn long is charged for the first one.
#[test]
fn a_long_closure_in_place_sends_the_next_ones_to_the_lane() {
    let _limit = time_limit();
    let lanes = lanes(BOTH[0], 1);
    let cpu = lanes.cpu.handle().with_name("turns long");
    let me = thread::current().id();
    // (A probe goes to the lane.)
    loop {
        until_in_place(&cpu);
        if here_or_there(&cpu, Duration::from_millis(1)) == me {
            break;
        }
    }
    for _ in 0..64 {
        assert_ne!(here_or_there(&cpu, Duration::ZERO), me);
    }
}

#[test]
fn without_a_limit_in_place_all_go_to_the_lane() {
    let _limit = time_limit();
    let lanes = lanes_with(BOTH[0], 1, |builder| {
        builder.run_in_place_up_to(Duration::ZERO)
    });
    let cpu = lanes.cpu.handle().with_name("never in place");
    for _ in 0..100 {
        assert_ne!(here_or_there(&cpu, Duration::ZERO), thread::current().id());
    }
}

#[test]
fn the_lanes_own_threads_compute_in_place() {
    on_both(1, |lanes| {
        let cpu = lanes.cpu.handle();
        let own = cpu.clone().spawn(async move {
            let there = cpu.run_cpu(|| thread::current().id()).await.unwrap();
            (there, thread::current().id())
        });
        let (there, here) = own.wait().unwrap();
        assert_eq!(there, here);
    });
}

/// The same errors, with the same payload, on either side.
#[test]
fn errors_are_the_same_in_place() {
    let _limit = time_limit();
    let lanes = lanes(BOTH[0], 1);
    let cpu = lanes.cpu.handle().with_name("fails");
    let fail = |cpu: &Handle| -> JoinError {
        block_on(cpu.run_cpu(|| std::panic::resume_unwind(Box::new(7_u8)))).unwrap_err()
    };
    for in_place in [false, true] {
        if in_place {
            until_in_place(&cpu);
        }
        let payload = fail(&cpu).into_panic();
        assert_eq!(payload.downcast_ref(), Some(&7_u8));
    }
    let late = cpu.with_deadline(Instant::now());
    until_in_place(&cpu);
    assert!(block_on(late.run_cpu(|| ())).unwrap_err().is_expired());
    assert_eq!(cpu.metrics().rejected, 1);
    until_in_place(&cpu);
    lanes.cpu.shutdown_background();
    assert!(block_on(cpu.run_cpu(|| ())).unwrap_err().is_shutdown());
}

/// In place there is no job: a full queue does not matter, and no counter moves.
#[test]
fn in_place_it_needs_no_permit() {
    let _limit = time_limit();
    let lanes = lanes_with(BOTH[0], 1, |builder| {
        builder.queue_limit(Priority::Normal, 1)
    });
    let cpu = lanes.cpu.handle().with_name("no permit");
    until_in_place(&cpu);
    let submitted = cpu.metrics().submitted;
    let permit = cpu.try_reserve().unwrap();
    until_in_place(&cpu);
    assert_eq!(cpu.metrics().submitted, submitted);
    let sites = cpu.call_sites();
    let site = sites.iter().find(|site| site.site == "no permit").unwrap();
    assert!(site.jobs > submitted);
    // A site that is not known yet goes to the lane.
    let unknown = cpu.with_name("no permit, unknown");
    assert!(
        block_on(unknown.run_cpu(|| ()))
            .unwrap_err()
            .is_queue_full()
    );
    drop(permit);
}

#[test]
fn the_free_functions_work_in_place() {
    let _limit = time_limit();
    let lanes = lanes(BOTH[0], 1);
    let cpu = lanes.cpu.handle().with_name("nested");
    until_in_place(&cpu);
    let me = thread::current().id();
    loop {
        let (there, task) =
            block_on(cpu.run_cpu(|| (thread::current().id(), twolane::spawn_cpu(|| 42)))).unwrap();
        assert_eq!(task.wait().unwrap(), 42);
        if there == me {
            return;
        }
    }
}

/// However small they are: the other task of this thread gets its turn.
#[test]
fn a_loop_of_small_closures_yields() {
    let _limit = time_limit();
    let lanes = lanes(BOTH[0], 1);
    let cpu = lanes.cpu.handle().with_name("yields");
    let io = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let turns = Arc::new(AtomicUsize::new(0));
    io.block_on(async {
        let counted = turns.clone();
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, SeqCst);
                tokio::task::yield_now().await;
            }
        });
        // Without Tokio's budget, which would yield as well.
        let computes = tokio::task::unconstrained(async {
            let me = thread::current().id();
            let (mut in_place, mut before) = (0, turns.load(SeqCst));
            let mut yielded_in_place = 0;
            while yielded_in_place < 10 {
                let there = cpu.run_cpu(|| thread::current().id()).await.unwrap();
                let now = turns.load(SeqCst);
                if there == me {
                    in_place += 1;
                    yielded_in_place += usize::from(now > before);
                }
                before = now;
            }
            in_place
        });
        assert!(computes.await > 100, "a small closure is not worth a yield");
        other.abort();
    });
}

#[test]
fn many_at_once_give_each_output_once() {
    on_both(2, |lanes| {
        let cpu = lanes.cpu.handle().with_name("many");
        lanes.io.block_on(async {
            for _ in 0..50 {
                let all: FuturesUnordered<_> =
                    (0..100_u64).map(|n| cpu.run_cpu(move || n)).collect();
                let mut found: Vec<_> = all.map(Result::unwrap).collect().await;
                found.sort();
                assert_eq!(found, (0..100).collect::<Vec<_>>());
            }
        });
    });
}

#[test]
fn a_drop_cancels_what_has_not_run() {
    let _limit = time_limit();
    let lanes = lanes(BOTH[0], 1);
    let cpu = lanes.cpu.handle();
    let stuck = Stuck::start(&cpu);
    let ran = Arc::new(AtomicUsize::new(0));
    let make = || {
        let ran = ran.clone();
        cpu.run_cpu(move || ran.fetch_add(1, SeqCst))
    };
    drop(make());
    let mut queued = make();
    assert!(block_on(async { futures::poll!(&mut queued) }).is_pending());
    drop(queued);
    stuck.end();
    lanes.cpu.shutdown().wait();
    assert_eq!(ran.load(SeqCst), 0);
    assert_eq!(cpu.metrics().cancelled, 1);
}
