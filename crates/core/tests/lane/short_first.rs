//! Short jobs pass long ones at `Normal`, with nothing set: in which order do they begin?

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver};
use std::task::Poll;
use std::time::Duration;

use twolane_core::{Builder, Handle, Priority};

use crate::computing::compute_for;
use crate::support::busy::Busy;
use crate::support::{self, Stuck, nothing};

/// Well above what counts as short.
pub(crate) const LONG: Duration = Duration::from_millis(20);

/// One thread, and as the lane comes but for these.
fn with(set: impl Fn(Builder) -> Builder, test: impl Fn(&Handle)) {
    let lanes = support::lanes_with(1, set);
    test(lanes.cpu.handle());
}

fn on_lane(test: impl Fn(&Handle)) {
    with(|builder| builder.short_jobs_first(true), test);
}

/// Jobs of a name that the lane knows to be short.
pub(crate) fn short(cpu: &Handle) -> Handle {
    let short = cpu.with_name("short");
    (0..8).for_each(|_| short.spawn_cpu(nothing).wait().unwrap());
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

/// Each short job submits the next one, so there is always one: a long one has its turn all the same.
#[test]
fn a_long_job_has_its_turn_among_short_ones_that_never_end() {
    on_lane(|cpu| {
        let (short, long) = (short(cpu), long(cpu));
        let _busy = Busy::with(2, &short);
        long.spawn_cpu(nothing).wait().unwrap();
    });
}

/// Futures that yield for ever, in steps that are short, are among the others. Their time counted
/// for the short jobs once, so that these never had their turn.
#[test]
fn a_short_job_has_its_turn_among_short_futures_that_never_end() {
    on_lane(|cpu| {
        let is_over = Arc::<AtomicBool>::default();
        let yields = |over: Arc<AtomicBool>| async move {
            while !over.load(SeqCst) {
                tokio::task::yield_now().await;
            }
        };
        let _both = [(), ()].map(|()| cpu.with_name("yields").spawn(yields(is_over.clone())));
        let short = short(cpu);
        for _ in 0..1_000 {
            short.spawn_cpu(nothing).wait().unwrap();
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
    on_lane(|cpu| {
        let (short, new) = (short(cpu), cpu.with_name("new"));
        let held = Stuck::start(cpu);
        // Eight until it is known, and as many again for what is looked at meanwhile.
        let busy = Busy::default();
        let news: Vec<_> = (0..16 + LEFT)
            .map(|_| new.spawn_cpu(busy.count()))
            .collect();
        busy.start(2, &short);
        held.end();
        // Before the last of them began.
        let others = news.into_iter().map(|new| new.wait().unwrap());
        let others = others.max().unwrap();
        // With a turn each 100 ms it was more than that for each.
        assert!(others < 10_000, "{others} others");
    });
}

#[test]
fn one_job_of_a_new_line_is_tried_at_a_time() {
    on_lane(|cpu| {
        let long = long(cpu);
        let order = begins(cpu, |submit| {
            (0..3).for_each(|_| submit(&long, "long"));
            // Without a name: both are of the line in `begins`.
            submit(cpu, "tried");
            submit(cpu, "not tried");
        });
        let order: Vec<_> = order.iter().collect();
        assert_eq!(order, ["tried", "long", "long", "long", "not tried"]);
    });
}

#[test]
fn a_site_that_turns_long_passes_no_more() {
    on_lane(|cpu| {
        let (changes, long) = (short(cpu), long(cpu));
        let order = |of_long, of_it| {
            let order = begins(cpu, |submit| {
                (0..of_long).for_each(|_| submit(&long, "long"));
                (0..of_it).for_each(|_| submit(&changes, "it"));
            });
            order.iter().collect::<Vec<_>>()
        };
        assert_eq!(order(2, 3), ["it", "it", "it", "long", "long"]);
        let turn = || changes.spawn_cpu(|| compute_for(LONG)).wait().unwrap();
        (0..5).for_each(|_| turn());
        assert_eq!(order(1, 1), ["long", "it"]);
        (0..100).for_each(|_| changes.spawn_cpu(nothing).wait().unwrap());
        assert_eq!(order(1, 1), ["it", "long"]);
    });
}

#[test]
fn a_short_future_that_is_woken_in_its_own_step_goes_on_before_long_jobs() {
    on_lane(|cpu| {
        let (short, long) = (short(cpu), long(cpu));
        let (ends, ended) = mpsc::channel();
        let order = begins(cpu, |submit| {
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
    on_lane(|cpu| {
        let long = long(cpu);
        let (steps, stepped) = mpsc::channel();
        let order = begins(cpu, |submit| {
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
    with(limited, |cpu| {
        let short = short(cpu);
        let held = Stuck::start(cpu);
        let queued = short.spawn_cpu(nothing);
        let refused = short.spawn_cpu(nothing).wait().unwrap_err();
        assert_eq!(refused.kind(), twolane_core::JoinErrorKind::QueueFull);
        held.end();
        queued.wait().unwrap();
        short.spawn_cpu(nothing).wait().unwrap();
    });
}

#[test]
fn a_lane_may_be_fifo_and_the_other_priorities_are() {
    let fifo = |cpu: &Handle, priority| {
        let cpu = cpu.with_priority(priority);
        let (short, long) = (short(&cpu), long(&cpu));
        let order = begins(&cpu, |submit| {
            submit(&long, "long");
            submit(&short, "short");
        });
        assert_eq!([(); 2].map(|()| order.recv().unwrap()), ["long", "short"]);
    };
    with(
        |builder| builder.short_jobs_first(false),
        |cpu| fifo(cpu, Priority::Normal),
    );
    on_lane(|cpu| {
        fifo(cpu, Priority::High);
        fifo(cpu, Priority::Low);
    });
}
