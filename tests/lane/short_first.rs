//! Short jobs pass long ones at `Normal`, with nothing set: which thread runs them, and whose jobs
//! do they stay?

use std::sync::mpsc;
use std::time::Duration;

use twolane::{Backend, Builder, CpuRuntime, Handle, JoinErrorKind, Priority};

use crate::computing::compute_for;
use crate::support::wait::wait_until;
use crate::support::{self, Lanes, Stuck, thread_name, time_limit, with_both};

/// Well above what counts as short.
const LONG: Duration = Duration::from_millis(20);

/// As the lane comes, but for these.
fn lanes_with(backend: Backend, threads: usize, set: impl FnOnce(Builder) -> Builder) -> Lanes {
    support::lanes_with(backend, threads, |builder| {
        set(builder.short_jobs_first(true))
    })
}

fn lanes(backend: Backend, threads: usize) -> Lanes {
    lanes_with(backend, threads, |builder| builder)
}

fn on_both(threads: usize, test: impl Fn(Lanes)) {
    with_both(|backend| test(lanes(backend, threads)));
}

/// Jobs of a name that the lane knows to be short.
fn short(cpu: &CpuRuntime, name: &str) -> Handle {
    let short = cpu.handle().with_name(name);
    (0..8).for_each(|_| short.spawn_cpu(|| ()).wait().unwrap());
    short
}

/// The same, for long ones.
fn long(cpu: &CpuRuntime, name: &str) -> Handle {
    let long = cpu.handle().with_name(name);
    long.spawn_cpu(|| compute_for(LONG)).wait().unwrap();
    long
}

/// Jobs of an unknown name that hold each thread of `Normal`.
fn hold(cpu: &CpuRuntime) -> Vec<Stuck<()>> {
    let threads = 0..cpu.handle().worker_threads();
    threads.map(|_| Stuck::start(&cpu.handle())).collect()
}

fn end(held: Vec<Stuck<()>>) {
    held.into_iter().for_each(Stuck::end);
}

/// `High`'s threads help with `Backend::Rayon` alone.
fn on_rayon(threads: usize, test: impl Fn(Lanes)) {
    let _limit = time_limit();
    test(lanes(Backend::Rayon, threads));
}

#[test]
fn a_short_job_runs_while_all_threads_are_held_and_long_jobs_are_queued() {
    on_rayon(2, |Lanes { cpu, io: _io }| {
        let (short, long) = (short(&cpu, "short"), long(&cpu, "long"));
        let held = hold(&cpu);
        let queued: Vec<_> = (0..100).map(|_| long.spawn_cpu(thread_name)).collect();
        let of_normal = short.spawn_cpu(|| (Handle::current().priority(), thread_name()));
        let (priority, thread) = of_normal.wait().unwrap();
        assert_eq!(priority, Priority::Normal);
        assert!(thread.starts_with("cpu-high-"), "{thread}");
        assert_eq!(cpu.handle().metrics().queued, 100);
        end(held);
        for task in queued {
            let thread = task.wait().unwrap();
            assert!(!thread.contains("high"), "{thread}");
        }
        // It is counted where it was submitted.
        let normal = cpu.handle().metrics();
        assert_eq!(normal.submitted, normal.completed);
        let high = cpu.handle().with_priority(Priority::High).metrics();
        assert_eq!((high.submitted, high.completed), (0, 0));
    });
}

#[test]
fn it_takes_a_permit_of_normal() {
    let _limit = time_limit();
    let settings = |builder: Builder| builder.queue_limit(Priority::Normal, 3);
    let Lanes { cpu, io: _io } = lanes_with(Backend::Rayon, 2, settings);
    let short = short(&cpu, "short");
    let held = hold(&cpu);
    let (task, let_go) = Stuck::start(&short).split();
    let refused = short.spawn_cpu(|| ()).wait().unwrap_err();
    assert_eq!(refused.kind(), JoinErrorKind::QueueFull);
    let_go.send(()).unwrap();
    task.wait().unwrap();
    short.spawn_cpu(|| ()).wait().unwrap();
    end(held);
}

/// What it submits is what the same job submits on a thread of `Normal`.
#[test]
fn it_is_a_job_of_normal_inside() {
    on_rayon(2, |Lanes { cpu, io: _io }| {
        let short = short(&cpu, "short");
        let held = hold(&cpu);
        let handle = cpu.handle();
        let nested = short.spawn_cpu(move || {
            // The threads of `Normal` are held.
            let inside = handle.install(thread_name).unwrap();
            assert_eq!(inside, thread_name());
            twolane::spawn_cpu(|| Handle::current().priority())
        });
        let nested = nested.wait().unwrap();
        end(held);
        assert_eq!(nested.wait().unwrap(), Priority::Normal);
    });
}

/// A future that is woken in its own step, or by others, goes on wherever a thread is free.
#[test]
fn futures_come_back() {
    on_rayon(2, |Lanes { cpu, io: _io }| {
        let short = short(&cpu, "short");
        let held = hold(&cpu);
        for n in [1, 10, 100] {
            let (send, mut receive) = tokio::sync::mpsc::channel(1);
            let reads = short.spawn(async move {
                let mut sum = 0;
                while let Some(n) = receive.recv().await {
                    twolane::yield_now().await;
                    tokio::task::yield_now().await;
                    sum += n;
                }
                sum
            });
            let writes = short.spawn(async move {
                for n in 0..n {
                    send.send(n).await.unwrap();
                }
            });
            writes.wait().unwrap();
            assert_eq!(reads.wait().unwrap(), n * (n - 1) / 2);
        }
        end(held);
        let metrics = cpu.handle().metrics();
        assert_eq!((metrics.queued, metrics.suspended), (0, 0), "{metrics}");
    });
}

/// Where `High` has jobs of its own, they take all its threads but one, whether they are known to be
/// short or not: a short job may wait for a lock.
#[test]
fn helped_jobs_do_not_hold_high_up() {
    on_rayon(2, |Lanes { cpu, io: _io }| {
        let known = short(&cpu, "known");
        let held = hold(&cpu);
        let high = cpu.handle().with_priority(Priority::High);
        high.spawn_cpu(|| ()).wait().unwrap();
        let beside_a_helped_one = |handle: &Handle| {
            let helped = Stuck::start(handle);
            let others: Vec<_> = (0..10).map(|_| handle.spawn_cpu(|| ())).collect();
            high.spawn_cpu(|| ()).wait().unwrap();
            assert_eq!(cpu.handle().metrics().running, 3);
            helped.end();
            others
        };
        // The thread that helped goes on with these.
        for task in beside_a_helped_one(&known) {
            task.wait().unwrap();
        }
        // Those that were not tried wait for `Normal`.
        let others = beside_a_helped_one(&cpu.handle().with_name("new"));
        end(held);
        others.into_iter().for_each(|task| task.wait().unwrap());
    });
    // One thread is none to spare for what is not known.
    on_rayon(1, |Lanes { cpu, io: _io }| {
        let held = hold(&cpu);
        let new = cpu.handle().spawn_cpu(thread_name);
        let high = cpu.handle().with_priority(Priority::High);
        high.spawn_cpu(|| ()).wait().unwrap();
        end(held);
        assert_eq!(new.wait().unwrap(), "cpu-0");
    });
}

/// Where `High` has none, all its threads run what is known to be short.
#[test]
fn all_threads_of_an_unused_high_help() {
    on_rayon(2, |Lanes { cpu, io: _io }| {
        let short = short(&cpu, "short");
        let held = hold(&cpu);
        let helped = [(); 2].map(|()| Stuck::start(&short));
        assert_eq!(cpu.handle().metrics().running, 4);
        helped.into_iter().for_each(Stuck::end);
        end(held);
    });
}

#[test]
fn one_thread_helps_as_well() {
    on_rayon(1, |Lanes { cpu, io: _io }| {
        let short = short(&cpu, "short");
        let held = hold(&cpu);
        assert_eq!(short.spawn_cpu(thread_name).wait().unwrap(), "cpu-high-0");
        end(held);
    });
}

/// What is queued as short while the site turns long, `High` leaves to `Normal`.
#[test]
fn a_site_that_turns_long_is_helped_no_more() {
    on_rayon(1, |Lanes { cpu, io: _io }| {
        let changes = short(&cpu, "changes");
        let held = hold(&cpu);
        let high = Stuck::start(&cpu.handle().with_priority(Priority::High));
        let turns = [(); 5].map(|()| changes.spawn_cpu(|| compute_for(LONG)));
        let queued: Vec<_> = (0..10).map(|_| changes.spawn_cpu(thread_name)).collect();
        high.end();
        turns.into_iter().for_each(|task| task.wait().unwrap());
        // `High` has passed them on, or is about to: it takes none.
        end(held);
        for task in queued {
            assert_eq!(task.wait().unwrap(), "cpu-0");
        }
        // And short jobs bring it back.
        (0..100).for_each(|_| changes.spawn_cpu(|| ()).wait().unwrap());
        let held = hold(&cpu);
        assert_eq!(changes.spawn_cpu(thread_name).wait().unwrap(), "cpu-high-0");
        end(held);
    });
}

/// On the threads of `Normal` itself.
#[test]
fn short_jobs_begin_first_and_eight_of_them_before_each_long_one() {
    on_both(1, |Lanes { cpu, io: _io }| {
        let (short, long) = (short(&cpu, "short"), long(&cpu, "long"));
        let held = hold(&cpu);
        // Nothing helps.
        let high = Stuck::start(&cpu.handle().with_priority(Priority::High));
        let (begins, begun) = mpsc::channel();
        let submit = |handle: &Handle, name: &'static str| {
            let begins = begins.clone();
            handle
                .spawn_cpu(move || begins.send(name).unwrap())
                .detach();
        };
        (0..2).for_each(|_| submit(&long, "long"));
        (0..20).for_each(|_| submit(&short, "short"));
        end(held);
        let order: Vec<_> = (0..22).map(|_| begun.recv().unwrap()).collect();
        let at = |name| {
            let is_it = |(n, it): (usize, &&str)| (*it == name).then_some(n);
            order
                .iter()
                .enumerate()
                .filter_map(is_it)
                .collect::<Vec<_>>()
        };
        assert_eq!(at("long"), [8, 17]);
        high.end();
    });
}

#[test]
fn a_lane_may_be_fifo() {
    with_both(|backend| {
        let settings = |builder: Builder| builder.short_jobs_first(false);
        let Lanes { cpu, io: _io } = lanes_with(backend, 1, settings);
        let (short, long) = (short(&cpu, "short"), long(&cpu, "long"));
        let held = hold(&cpu);
        let (begins, begun) = mpsc::channel();
        for (handle, name) in [(&long, "long"), (&short, "short")] {
            let begins = begins.clone();
            handle
                .spawn_cpu(move || begins.send(name).unwrap())
                .detach();
        }
        end(held);
        assert_eq!(
            [begun.recv().unwrap(), begun.recv().unwrap()],
            ["long", "short"]
        );
    });
}

/// While jobs are helped, the lane closes.
#[test]
fn a_shutdown_ends_helped_and_waiting_jobs() {
    on_rayon(2, |Lanes { cpu, io: _io }| {
        let short = short(&cpu, "short");
        let held = hold(&cpu);
        let running = [(); 2].map(|()| Stuck::start(&short).split());
        let waits: Vec<_> = (0..100).map(|_| short.spawn_cpu(|| ())).collect();
        let over = cpu.shutdown();
        for task in waits {
            assert_eq!(task.wait().unwrap_err().kind(), JoinErrorKind::Shutdown);
        }
        for (task, let_go) in running {
            let_go.send(()).unwrap();
            task.wait().unwrap();
        }
        end(held);
        assert!(over.wait().is_empty());
    });
}

/// A rayon job of such a job is done by `High`'s pool.
#[test]
fn rayon_children_run_beside_it() {
    let _limit = time_limit();
    let Lanes { cpu, io: _io } = lanes(Backend::Rayon, 2);
    let short = short(&cpu, "short");
    let held = hold(&cpu);
    let threads = short.spawn_cpu(|| rayon::join(thread_name, thread_name));
    let (one, other) = threads.wait().unwrap();
    assert!(
        one.contains("high") && other.contains("high"),
        "{one} {other}"
    );
    end(held);
}

/// With nothing set and nothing named: the line of the program tells.
#[test]
fn a_line_becomes_known_while_all_threads_are_held() {
    on_rayon(2, |Lanes { cpu, io: _io }| {
        let held = hold(&cpu);
        let (tells, told) = mpsc::channel();
        let submit = || {
            let tells = tells.clone();
            cpu.spawn_cpu(move || tells.send(()).unwrap())
        };
        // While one of `High`'s threads is busy, no job is tried, and it queues with the others.
        let mut tasks = Vec::new();
        for _ in 0..8 {
            tasks.push(submit());
            while told.recv_timeout(Duration::from_millis(1)).is_err() {
                tasks.push(submit());
            }
        }
        // None of them runs any more, and the samples are there.
        wait_until(|| cpu.handle().metrics().running == 2);
        submit().wait().unwrap();
        end(held);
        tasks.into_iter().for_each(|task| task.wait().unwrap());
    });
}

/// No thread of `High` helps with `Backend::Runtime`. The next thread that is free learns.
#[test]
fn a_runtime_learns_between_long_jobs() {
    let _limit = time_limit();
    let Lanes { cpu, io: _io } = lanes(Backend::Runtime, 1);
    let long = long(&cpu, "long");
    let held = hold(&cpu);
    let queued: Vec<_> = (0..1_000).map(|_| long.spawn_cpu(|| ())).collect();
    let new = cpu.handle().with_name("new");
    let first = new.spawn_cpu(move || {
        let queued_behind = Handle::current().metrics().queued;
        assert!(queued_behind >= 1_000, "{queued_behind}");
    });
    end(held);
    first.wait().unwrap();
    queued.into_iter().for_each(|task| task.wait().unwrap());
}
