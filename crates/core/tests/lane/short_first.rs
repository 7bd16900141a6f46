//! Short jobs pass long ones at `Normal`, with nothing set: in which order do they begin?

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver};
use std::task::Poll;
use std::time::Duration;

use twolane_core::{Builder, CpuRuntime, Handle, Priority};

use crate::computing::compute_for;
use crate::support::{self, Lanes, Stuck, time_limit};

/// Well above what counts as short.
pub(crate) const LONG: Duration = Duration::from_millis(20);

/// One thread, and as the lane comes but for these.
fn with(set: impl Fn(Builder) -> Builder, test: impl Fn(Lanes)) {
    let _limit = time_limit();
    test(support::lanes_with(1, &set));
}

fn on_lane(test: impl Fn(Lanes)) {
    with(|builder| builder.short_jobs_first(true), test);
}

/// Jobs of a name that the lane knows to be short.
pub(crate) fn short(cpu: &Handle) -> Handle {
    let short = cpu.with_name("short");
    (0..8).for_each(|_| short.spawn_cpu(|| ()).wait().unwrap());
    short
}

/// The same, for long ones.
pub(crate) fn long(cpu: &Handle) -> Handle {
    let long = cpu.with_name("long");
    long.spawn_cpu(|| compute_for(LONG)).wait().unwrap();
    long
}

/// Submits while the thread is held. Returns the names in the order in which the jobs begin.
fn begins(
    cpu: &Handle,
    submit: impl FnOnce(&dyn Fn(&Handle, &'static str)),
) -> Receiver<&'static str> {
    let held = Stuck::start(cpu);
    let (begins, begun) = mpsc::channel();
    submit(&|handle, name| {
        let begins = begins.clone();
        handle
            .spawn_cpu(move || begins.send(name).unwrap())
            .detach();
    });
    held.end();
    begun
}

#[test]
fn they_begin_first() {
    on_lane(|Lanes { cpu, io: _io }| {
        let cpu = cpu.handle().clone();
        let (short, long) = (short(&cpu), long(&cpu));
        let order = begins(&cpu, |submit| {
            (0..2).for_each(|_| submit(&long, "long"));
            (0..3).for_each(|_| submit(&short, "short"));
        });
        let order: Vec<_> = order.iter().collect();
        assert_eq!(order, ["short", "short", "short", "long", "long"]);
    });
}

/// Each short job submits the next one, so there is always one: a long one has its turn all the same.
#[test]
fn a_long_job_has_its_turn_among_short_ones_that_never_end() {
    fn submit_another(short: &Handle, is_over: &Arc<AtomicBool>) {
        let (next, over) = (short.clone(), is_over.clone());
        let another = move || {
            if !over.load(SeqCst) {
                submit_another(&next, &over);
            }
        };
        short.spawn_cpu(another).detach();
    }
    on_lane(|Lanes { cpu, io: _io }| {
        let cpu = cpu.handle().clone();
        let (short, long) = (short(&cpu), long(&cpu));
        let is_over = Arc::new(AtomicBool::new(false));
        (0..2).for_each(|_| submit_another(&short, &is_over));
        let ends = is_over.clone();
        long.spawn_cpu(move || ends.store(true, SeqCst))
            .wait()
            .unwrap();
    });
}

/// Futures that yield for ever, in steps that are short, are among the others. Their time counted
/// for the short jobs once, so that these never had their turn.
#[test]
fn a_short_job_has_its_turn_among_short_futures_that_never_end() {
    on_lane(|Lanes { cpu, io: _io }| {
        let cpu = cpu.handle().clone();
        let is_over = Arc::<AtomicBool>::default();
        let yields = |over: Arc<AtomicBool>| async move {
            while !over.load(SeqCst) {
                tokio::task::yield_now().await;
            }
        };
        let _both = [(), ()].map(|()| cpu.with_name("yields").spawn(yields(is_over.clone())));
        let short = short(&cpu);
        for _ in 0..1_000 {
            short.spawn_cpu(|| ()).wait().unwrap();
        }
        is_over.store(true, SeqCst);
    });
}

/// With nothing named, the line of the program tells.
/// Of 200 that came in a burst from a new line, 172 had not begun six seconds later, behind later
/// ones of the same line. They have the share of the others, by the time that they take.
#[test]
fn jobs_that_came_before_their_line_was_known_do_not_wait_for_a_turn_each() {
    const LEFT: usize = 8;
    fn submit_another(short: &Handle, tell: &mpsc::Sender<&'static str>, over: &Arc<AtomicBool>) {
        let (again, told, is_over) = (short.clone(), tell.clone(), over.clone());
        let another = move || {
            if !is_over.load(SeqCst) {
                told.send("other").unwrap();
                submit_another(&again, &told, &is_over);
            }
        };
        short.spawn_cpu(another).detach();
    }
    on_lane(|Lanes { cpu, io: _io }| {
        let cpu = cpu.handle().clone();
        let (short, new) = (short(&cpu), cpu.with_name("new"));
        let is_over = Arc::<AtomicBool>::default();
        let (tell, told) = mpsc::channel();
        let held = Stuck::start(&cpu);
        // Eight until it is known, and as many again for what is looked at meanwhile.
        for _ in 0..16 + LEFT {
            let tell = tell.clone();
            new.spawn_cpu(move || tell.send("new").unwrap()).detach();
        }
        (0..2).for_each(|_| submit_another(&short, &tell, &is_over));
        held.end();
        let (mut news, mut others) = (0, 0);
        while news < 16 + LEFT {
            match told.recv().unwrap() {
                "new" => news += 1,
                _ => others += 1,
            }
        }
        is_over.store(true, SeqCst);
        // With a turn each 100 ms it was more than that for each.
        assert!(others < 10_000, "{others} others");
    });
}

#[test]
fn one_job_of_a_new_line_is_tried_at_a_time() {
    on_lane(|Lanes { cpu, io: _io }| {
        let cpu = cpu.handle().clone();
        let long = long(&cpu);
        let new = |submit: &dyn Fn(&Handle, &'static str), name| submit(&cpu, name);
        let order = begins(&cpu, |submit| {
            (0..3).for_each(|_| submit(&long, "long"));
            new(submit, "tried");
            new(submit, "not tried");
        });
        let order: Vec<_> = order.iter().collect();
        assert_eq!(order, ["tried", "long", "long", "long", "not tried"]);
    });
}

#[test]
fn a_site_that_turns_long_passes_no_more() {
    on_lane(|Lanes { cpu, io: _io }| {
        let cpu = cpu.handle().clone();
        let (changes, long) = (short(&cpu), long(&cpu));
        let order = || {
            let order = begins(&cpu, |submit| {
                submit(&long, "long");
                submit(&changes, "it");
            });
            [(); 2].map(|()| order.recv().unwrap())
        };
        assert_eq!(order(), ["it", "long"]);
        let turn = || changes.spawn_cpu(|| compute_for(LONG)).wait().unwrap();
        (0..5).for_each(|_| turn());
        assert_eq!(order(), ["long", "it"]);
        (0..100).for_each(|_| changes.spawn_cpu(|| ()).wait().unwrap());
        assert_eq!(order(), ["it", "long"]);
    });
}

#[test]
fn a_short_future_that_is_woken_in_its_own_step_goes_on_before_long_jobs() {
    on_lane(|Lanes { cpu, io: _io }| {
        let cpu = cpu.handle().clone();
        let (short, long) = (short(&cpu), long(&cpu));
        let (ends, ended) = mpsc::channel();
        let order = begins(&cpu, |submit| {
            submit(&long, "long");
            let mut steps = 0;
            let woken = poll_fn(move |cx| {
                steps += 1;
                ends.send(Handle::current().metrics().queued).unwrap();
                cx.waker().wake_by_ref();
                match steps {
                    1..4 => Poll::Pending,
                    _ => Poll::Ready(()),
                }
            });
            short.spawn(woken).detach();
        });
        // At each of its steps the long job is queued.
        assert_eq!([(); 4].map(|()| ended.recv().unwrap()), [1; 4]);
        assert_eq!(order.recv().unwrap(), "long");
    });
}

/// Its first step, which was tried, shows what it is.
#[test]
fn a_long_future_that_is_woken_in_its_own_step_passes_no_more() {
    on_lane(|Lanes { cpu, io: _io }| {
        let cpu = cpu.handle().clone();
        let long = long(&cpu);
        let (steps, stepped) = mpsc::channel();
        let order = begins(&cpu, |submit| {
            submit(&long, "long");
            let mut is_first = true;
            let woken = poll_fn(move |cx| {
                steps.send(Handle::current().metrics().queued).unwrap();
                if !std::mem::take(&mut is_first) {
                    return Poll::Ready(());
                }
                compute_for(LONG);
                cx.waker().wake_by_ref();
                Poll::Pending
            });
            cpu.with_name("new").spawn(woken).detach();
        });
        assert_eq!([(); 2].map(|()| stepped.recv().unwrap()), [1, 0]);
        assert_eq!(order.recv().unwrap(), "long");
    });
}

#[test]
fn it_takes_a_permit_as_any_other() {
    let limited = |builder: Builder| {
        let limited = builder.queue_limit(Priority::Normal, 2);
        limited.short_jobs_first(true)
    };
    with(limited, |Lanes { cpu, io: _io }| {
        let short = short(cpu.handle());
        let held = Stuck::start(cpu.handle());
        let queued = short.spawn_cpu(|| ());
        let refused = short.spawn_cpu(|| ()).wait().unwrap_err();
        assert_eq!(refused.kind(), twolane_core::JoinErrorKind::QueueFull);
        held.end();
        queued.wait().unwrap();
        short.spawn_cpu(|| ()).wait().unwrap();
    });
}

#[test]
fn a_lane_may_be_fifo_and_the_other_priorities_are() {
    let fifo = |cpu: &CpuRuntime, priority| {
        let cpu = cpu.handle().with_priority(priority);
        let (short, long) = (short(&cpu), long(&cpu));
        let order = begins(&cpu, |submit| {
            submit(&long, "long");
            submit(&short, "short");
        });
        assert_eq!([(); 2].map(|()| order.recv().unwrap()), ["long", "short"]);
    };
    with(
        |builder| builder.short_jobs_first(false),
        |Lanes { cpu, io: _io }| fifo(&cpu, Priority::Normal),
    );
    on_lane(|Lanes { cpu, io: _io }| {
        fifo(&cpu, Priority::High);
        fifo(&cpu, Priority::Low);
    });
}
