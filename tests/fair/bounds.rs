//! How much a tenant may have at a time, and what the end of a lane leaves of it.

use std::future::pending;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use futures::future::BoxFuture;
use twolane::{Handle, JoinError, JoinErrorKind, Key, Priority};

use crate::support::{PanicsOnDrop, Stuck};
use crate::{Keys, all};

fn is_key_full(error: &JoinError) -> bool {
    error.kind() == JoinErrorKind::KeyFull && error.is_unavailable()
}

#[test]
fn a_full_key_is_refused_alone() {
    let keys = Keys::on(1);
    let a = keys.bounded("a", 3);
    let held = Stuck::start(&keys.of("a"));
    let one = a.spawn_cpu(|| 1);
    let two = a.spawn(async { 2 });
    let error = a.spawn_cpu(|| 3).wait().unwrap_err();
    assert!(is_key_full(&error));
    let text = error.to_string();
    assert!(
        text.contains("3 jobs of this key") && text.contains("with_max_jobs"),
        "{text}"
    );
    assert!(is_key_full(&a.try_reserve().unwrap_err()));
    assert!(
        is_key_full(&a.reserve().wait().unwrap_err()),
        "nobody waits for a key"
    );
    assert_eq!(a.metrics().rejected, 3);
    let other = keys.of("b").spawn_cpu(|| 4);
    held.end();
    assert_eq!(all([one, two, other]), [1, 2, 4]);
    assert_eq!(a.spawn_cpu(|| 3).wait().unwrap(), 3);
}

/// A client that comes and goes must not fill the memory.
#[test]
fn a_job_that_was_dropped_counts_until_the_lane_has_dropped_it() {
    let keys = Keys::on(1);
    let a = keys.bounded("a", 9);
    let held = Stuck::start(&keys.of("a"));
    let captured = Arc::new(());
    let submit = |cpu: &Handle| {
        let keeps = captured.clone();
        cpu.spawn_cpu(move || panic!("{keeps:?} was dropped before it began"))
    };
    for _ in 0..1_000 {
        drop(submit(&a));
    }
    assert_eq!(Arc::strong_count(&captured) - 1, 8);
    let error: JoinError = submit(&a).wait().unwrap_err();
    assert!(is_key_full(&error));
    drop(submit(&keys.of("b")));
    held.end();
    // Behind them in the queue, so they are gone.
    all(["a", "b"].map(|key| keys.of(key).spawn_cpu(|| ())));
    assert_eq!(Arc::strong_count(&captured), 1);
}

#[test]
fn suspended_futures_of_a_key_are_bounded_as_its_queue_is_and_have_no_turn() {
    let keys = Keys::on(1);
    let begin = |key| {
        let (begins, begun) = channel();
        let task = keys.bounded(key, 8).spawn(async move {
            begins.send(()).unwrap();
            pending::<()>().await
        });
        // An error: it was refused.
        (task, begun.recv().is_ok())
    };
    let tasks: Vec<_> = (0..100).map(|_| begin("a")).collect();
    assert_eq!(tasks.iter().filter(|(_, has_begun)| *has_begun).count(), 8);
    let (refused, _) = tasks.into_iter().next_back().unwrap();
    assert!(is_key_full(&refused.wait().unwrap_err()));
    assert!(begin("b").1, "another key");
    // They have been dropped, and the lane drops them.
    while !begin("a").1 {}
    assert_eq!(keys.of("a").spawn_cpu(|| 1).wait().unwrap(), 1);
}

/// They are not refused, and count for their key alone.
#[test]
fn jobs_of_jobs_are_not_refused_and_the_bound_holds_after_them() {
    fn nested(cpu: Handle, depth: u32) -> BoxFuture<'static, u32> {
        Box::pin(async move {
            match depth {
                0 => 1,
                _ => cpu.spawn(nested(cpu.clone(), depth - 1)).await.unwrap() + 1,
            }
        })
    }
    let keys = Keys::on(1);
    let a = keys.bounded("a", 2);
    // Each waits for the next one.
    assert_eq!(a.spawn(nested(a.clone(), 20)).wait().unwrap(), 21);
    let inner = a.clone();
    let many = a.spawn_cpu(move || Vec::from_iter((0..100).map(|_| inner.spawn_cpu(|| ()))));
    all(many.wait().unwrap());
    let most = keys.bounded("most", u16::MAX);
    let held = Stuck::start(&keys.of("other"));
    let tasks: Vec<_> = (0..u16::MAX).map(|_| most.spawn_cpu(|| ())).collect();
    assert!(is_key_full(&most.spawn_cpu(|| ()).wait().unwrap_err()));
    held.end();
    all(tasks);
    all([&most, &a].map(|cpu| cpu.spawn_cpu(|| ())));
}

#[test]
fn the_limit_in_jobs_counts_all() {
    let keys = Keys::with(1, |builder| builder.queue_limit(Priority::Normal, 3));
    let held = Stuck::start(&keys.of("a"));
    let two = [keys.of("a"), keys.plain().clone()].map(|cpu| cpu.spawn_cpu(|| 1));
    let b = keys.of("b");
    let full = b.spawn_cpu(|| 1).wait().unwrap_err();
    assert_eq!(full.kind(), JoinErrorKind::QueueFull);
    assert!(full.to_string().contains("3 jobs"), "{full}");
    let waits = b.reserve();
    held.end();
    let permit = waits.wait().unwrap();
    assert_eq!(permit.spawn_cpu(|| 2).wait().unwrap(), 2);
    assert_eq!(all(two), [1, 1]);
    // What was refused, or has ended, has left nothing behind.
    all((0..1_000).map(|_| b.spawn_cpu(|| ())));
}

/// One key fills the part of the room that its share is, and the others have theirs.
#[test]
fn a_limit_in_time_leaves_each_key_its_part() {
    let wait = Duration::from_millis(500);
    let keys = Keys::with(1, |builder| builder.max_wait(Priority::Normal, wait));
    let held = Stuck::start(&keys.of("z"));
    // Of each job nothing is known: it counts an eighth of 450 ms.
    let fill = |cpu: Handle| {
        let submit = || cpu.try_reserve().map(|permit| permit.spawn_cpu(|| ()));
        std::iter::from_fn(|| submit().ok()).collect::<Vec<_>>()
    };
    let a = fill(keys.of("a"));
    let refused = keys.of("a").spawn_cpu(|| ()).wait().unwrap_err();
    assert_eq!(refused.retry_after(), Some(wait));
    let b = fill(keys.of("b"));
    let plain = fill(keys.plain().clone());
    assert!(a.len() >= 4 && !b.is_empty() && !plain.is_empty());
    assert!(a.len() > b.len(), "{} {}", a.len(), b.len());
    held.end();
    all([a, b, plain].into_iter().flatten());
    let again = fill(keys.of("b"));
    assert!(!again.is_empty(), "what they were charged is free again");
}

#[test]
fn bounds_and_weights_of_zero_are_refused() {
    let zero: [(_, fn()); 2] = [
        ("with_max_jobs(0)", || drop(Key::new("a").with_max_jobs(0))),
        ("with_weight(0)", || drop(Key::new("a").with_weight(0))),
    ];
    for (text, does) in zero {
        let payload = catch_unwind(does).unwrap_err();
        let payload = payload.downcast::<&str>().unwrap();
        assert!(payload.contains(text), "{payload}");
    }
}

/// Without a turn, without stack for each, and whatever its destructor does.
#[test]
fn a_shutdown_answers_all_that_is_queued() {
    let keys = Keys::on(1);
    let is_shutdown = |error: JoinError| error.kind() == JoinErrorKind::Shutdown;
    let many = keys.bounded("a", u16::MAX);
    let held = Stuck::start(&keys.of("a"));
    // Behind the one whose destructor panics.
    let panics = PanicsOnDrop;
    let mut queued = vec![many.spawn_cpu(move || drop(panics))];
    queued.extend((0..50_000).map(|_| many.spawn_cpu(|| ())));
    queued.push(many.spawn_cpu_with(|_| Ok(())));
    let early = keys.of("b").spawn_cpu(|| 1);
    let shutdown = keys.lanes.cpu.shutdown();
    assert!(is_shutdown(early.wait().unwrap_err()));
    let late = keys.of("c").spawn(async { 1 });
    assert!(is_shutdown(late.wait().unwrap_err()));
    held.end();
    assert!(shutdown.wait().is_empty());
    for task in queued {
        assert!(is_shutdown(task.wait().unwrap_err()));
    }
    assert!(keys.busiest().iter().all(|usage| usage.queued == 0));
}
