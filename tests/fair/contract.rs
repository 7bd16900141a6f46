//! What a tenant gets: order, shares, bounds, names, spans.

use std::future::{pending, poll_fn};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::join_all;
use twolane::fair::{FairError, KeyUsage};
use twolane::{CpuRuntime, Fair};

use crate::{Notes, keep_a_thread, on_both};

#[test]
fn a_flood_does_not_queue_before_the_others() {
    on_both(1, async |_cpu, fair| {
        let (release, held) = keep_a_thread(&fair, "flood");
        let notes = Notes::default();
        let submit = |key| {
            let notes = notes.clone();
            fair.key(key).spawn_cpu(move || notes.note(key))
        };
        let mut tasks: Vec<_> = (0..200).map(|_| submit("flood")).collect();
        tasks.extend(["a", "b", "c"].map(submit));
        drop(release);
        held.await.unwrap();
        for task in tasks {
            task.await.unwrap();
        }
        let notes = notes.read();
        let last = notes.iter().rposition(|key| *key != "flood").unwrap();
        assert!(last < 8, "a, b or c were number {last} of {}", notes.len());
    });
}

#[test]
fn the_jobs_of_a_key_keep_their_order() {
    on_both(1, async |_cpu, fair| {
        let (release, held) = keep_a_thread(&fair, "a");
        let (send, order) = channel();
        let submit = |n| {
            let send = send.clone();
            fair.key("a").spawn_cpu(move || send.send(n).unwrap())
        };
        let tasks: Vec<_> = (0..100).map(submit).collect();
        drop(release);
        held.await.unwrap();
        join_all(tasks).await;
        assert_eq!(
            order.try_iter().collect::<Vec<_>>(),
            (0..100).collect::<Vec<_>>()
        );
    });
}

#[test]
fn a_full_key_is_refused_alone() {
    on_both(1, async |_cpu, fair| {
        let fair = fair.max_queued_per_key(2);
        let (release, held) = keep_a_thread(&fair, "a");
        let one = fair.key("a").spawn_cpu(|| 1);
        let two = fair.key("a").spawn(async { 2 });
        let error = fair.key("a").spawn_cpu(|| 3).await.unwrap_err();
        assert!(error.is_key_full() && error.is_queue_full());
        let text = error.to_string();
        assert!(
            text.contains("2 jobs of this key") && text.contains("max_queued_per_key"),
            "{text}"
        );
        let other = fair.key("b").spawn_cpu(|| 4);
        drop(release);
        held.await.unwrap();
        assert_eq!(one.await.unwrap(), 1);
        assert_eq!(two.await.unwrap(), 2);
        assert_eq!(fair.key("a").spawn_cpu(|| 3).await.unwrap(), 3);
        assert_eq!(other.await.unwrap(), 4);
    });
}

/// It left the queue, and the lane kept all that it held until the job that ran had ended: a client
/// that came and went filled the memory, and was never refused.
#[test]
fn a_job_that_was_dropped_counts_until_the_lane_has_dropped_it() {
    on_both(1, async |_cpu, fair| {
        let fair = fair.max_queued_per_key(8);
        let (release, held) = keep_a_thread(&fair, "a");
        let captured = Arc::new(());
        let submit = |key| {
            let keeps = captured.clone();
            fair.key(key)
                .spawn_cpu(move || panic!("{keeps:?} was dropped before it began"))
        };
        for _ in 0..1_000 {
            drop(submit("a"));
        }
        assert_eq!(Arc::strong_count(&captured) - 1, 8);
        let error: FairError = submit("a").await.unwrap_err();
        assert!(error.is_key_full());
        drop(submit("b"));
        drop(release);
        held.await.unwrap();
        // Behind them in the queue, so they are gone.
        assert_eq!(fair.key("a").spawn_cpu(|| 1).await.unwrap(), 1);
        assert_eq!(fair.key("b").spawn_cpu(|| 1).await.unwrap(), 1);
        assert_eq!(Arc::strong_count(&captured), 1);
    });
}

/// 99,747 of 100,000 were taken, at a bound of 256: a future that is suspended is in no queue.
#[test]
fn suspended_futures_of_a_key_are_bounded_as_its_queue_is() {
    on_both(1, async |_cpu, fair| {
        let fair = fair.max_queued_per_key(8);
        let begin = |key| {
            let (begins, begun) = channel();
            let task = fair.key(key).spawn(async move {
                begins.send(()).unwrap();
                pending::<()>().await
            });
            // An error: it was refused.
            (task, begun.recv().is_ok())
        };
        let tasks: Vec<_> = (0..100).map(|_| begin("a")).collect();
        assert_eq!(tasks.iter().filter(|(_, has_begun)| *has_begun).count(), 8);
        let (refused, _) = tasks.into_iter().next_back().unwrap();
        assert!(refused.await.unwrap_err().is_key_full());
        assert!(begin("b").1, "another key");
        // They have been dropped, and the lane drops them.
        while !begin("a").1 {}
    });
}

/// Its jobs, and those of all other keys, had no turn any more.
#[test]
fn a_hash_that_panics_stops_no_other_key() {
    static PANICS: AtomicBool = AtomicBool::new(false);
    #[derive(PartialEq, Eq)]
    struct Name(&'static str);
    impl Hash for Name {
        fn hash<H: Hasher>(&self, state: &mut H) {
            assert!(!PANICS.load(SeqCst), "the hash panics");
            self.0.hash(state);
        }
    }
    on_both(1, async |cpu, _| {
        PANICS.store(false, SeqCst);
        let fair = Fair::new(cpu.handle());
        let [a, b] = ["a", "b"].map(|name| fair.key(Name(name)));
        let (release, held) = channel::<()>();
        let running = a.spawn_cpu(move || held.recv());
        let queued = [&a, &b, &a, &b].map(|key| key.spawn_cpu(|| 1));
        PANICS.store(true, SeqCst);
        let named = catch_unwind(AssertUnwindSafe(|| fair.key(Name("c"))));
        assert!(named.is_err());
        drop(release);
        running.await.unwrap().unwrap_err();
        for task in queued {
            assert_eq!(task.await.unwrap(), 1);
        }
        assert_eq!(b.spawn(async { 2 }).await.unwrap(), 2);
    });
}

/// The turn was of one lane, and the job of the other.
#[test]
fn a_key_takes_no_handle_of_another_lane_or_priority() {
    on_both(1, async |cpu, fair| {
        let other = CpuRuntime::builder().worker_threads(1).build().unwrap();
        let urgent = cpu.handle().with_priority(twolane::Priority::High);
        for wrong in [other.handle().clone(), urgent] {
            let by = || fair.key("a").by(&wrong);
            let text = catch_unwind(AssertUnwindSafe(by)).unwrap_err();
            let text = *text.downcast::<&str>().unwrap();
            assert!(text.contains("another lane or priority"), "{text}");
        }
        let named = cpu.handle().with_name("own");
        let own = fair.key("a").by(&named).spawn_cpu(|| 1);
        assert_eq!(own.await.unwrap(), 1);
    });
}

#[test]
fn the_busiest_keys_come_by_what_they_used() {
    on_both(1, async |_cpu, fair| {
        let keys = ["a", "b", "c", "d", "e"];
        for (n, key) in keys.into_iter().enumerate() {
            let spin = move || (0..n * 400_000).fold(0, |sum, n| std::hint::black_box(sum ^ n));
            fair.key(key).spawn_cpu(spin).await.unwrap();
        }
        let all = fair.busiest(usize::MAX);
        assert_eq!(all.len(), 5);
        assert!(all.is_sorted_by(|one, next| one.cpu_time >= next.cpu_time));
        let name = |usage: &KeyUsage<&'static str>| *usage.key;
        let two: Vec<_> = fair.busiest(2).iter().map(name).collect();
        assert_eq!(two, [name(&all[0]), name(&all[1])]);
        assert!(fair.busiest(0).is_empty());
    });
}

#[test]
fn too_many_keys_with_jobs_are_an_error_and_keys_without_make_room() {
    on_both(1, async |_cpu, fair| {
        let fair = fair.max_keys(2);
        let (release, held) = keep_a_thread(&fair, "a");
        let (b, c) = (
            fair.key("b").spawn_cpu(|| ()),
            fair.key("c").spawn_cpu(|| ()),
        );
        let error = fair.key("d").spawn_cpu(|| ()).await.unwrap_err();
        assert!(matches!(error, FairError::KeysFull(2)), "{error}");
        assert!(error.is_queue_full() && !error.is_key_full());
        drop(release);
        held.await.unwrap();
        b.await.unwrap();
        c.await.unwrap();
        for key in ["e", "f", "g", "h"] {
            fair.key(key).spawn_cpu(|| ()).await.unwrap();
        }
        assert!(fair.busiest(100).len() <= 2);
    });
}

#[test]
fn a_job_that_sleeps_pays_for_its_thread() {
    on_both(1, async |_cpu, fair| {
        let sleep = || {
            let began = Instant::now();
            std::thread::sleep(Duration::from_millis(20));
            began.elapsed()
        };
        let slept = fair.key("a").spawn_cpu(sleep).await.unwrap();
        let paid = fair.busiest(1).pop().unwrap().cpu_time;
        // A reading may be 10 µs old.
        assert!(
            paid * 4 + Duration::from_micros(10) >= slept,
            "{paid:?} of {slept:?}"
        );
    });
}

#[test]
fn a_job_waits_for_another_one_of_its_key() {
    on_both(1, async |_cpu, fair| {
        fn nested(
            fair: Fair<&'static str>,
            depth: u32,
        ) -> futures::future::BoxFuture<'static, u32> {
            Box::pin(async move {
                match depth {
                    0 => 1,
                    depth => {
                        let inner = nested(fair.clone(), depth - 1);
                        fair.key("a").spawn(inner).await.unwrap() + 1
                    }
                }
            })
        }
        assert_eq!(nested(fair, 20).await, 21);
    });
}

#[test]
fn a_suspended_future_has_no_turn_and_each_step_is_charged() {
    on_both(1, async |_cpu, fair| {
        let suspended = [0; 10].map(|_| fair.key("a").spawn(pending::<()>()));
        assert_eq!(fair.key("a").spawn_cpu(|| 1).await.unwrap(), 1);
        assert_eq!(fair.key("b").spawn_cpu(|| 1).await.unwrap(), 1);
        drop(suspended);
        let mut steps = 0;
        let stepped = poll_fn(move |cx| {
            steps += 1;
            std::hint::black_box((0..200_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)));
            match steps {
                20 => Poll::Ready(steps),
                _ => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            }
        });
        assert_eq!(fair.key("steps").spawn(stepped).await.unwrap(), 20);
        let usage = fair.busiest(1).pop().unwrap();
        assert_eq!(*usage.key, "steps");
    });
}

#[test]
fn jobs_run_before_anybody_awaits_them() {
    on_both(1, async |_cpu, fair| {
        let ran = Arc::new(AtomicUsize::new(0));
        let count = || {
            let ran = ran.clone();
            fair.key("a").spawn_cpu(move || ran.fetch_add(1, SeqCst))
        };
        let tasks: Vec<_> = (0..50).map(|_| count()).collect();
        fair.key("a").spawn_cpu(|| ()).await.unwrap();
        assert_eq!(ran.load(SeqCst), 50);
        drop(tasks);
    });
}

/// The name of the span in which it is called.
fn span() -> Option<&'static str> {
    tracing::Span::current().metadata().map(|it| it.name())
}

#[test]
fn a_job_runs_in_the_span_of_its_submitter_whoever_ends_before_it() {
    let subscriber = tracing_subscriber::registry();
    let _set = tracing::subscriber::set_default(subscriber);
    on_both(1, async |_cpu, fair| {
        let (release, held) = tracing::info_span!("first").in_scope(|| keep_a_thread(&fair, "a"));
        let second = tracing::info_span!("second").in_scope(|| fair.key("a").spawn_cpu(span));
        let outside = fair.key("a").spawn_cpu(span);
        let future =
            tracing::info_span!("third").in_scope(|| fair.key("a").spawn(async { span() }));
        drop(release);
        held.await.unwrap();
        assert_eq!(second.await.unwrap(), Some("second"));
        assert_eq!(outside.await.unwrap(), Some("fair"), "not another job's");
        assert_eq!(future.await.unwrap(), Some("third"));
        assert_eq!(fair.key("a").spawn_cpu(span).await.unwrap(), None);
    });
}

#[test]
fn jobs_go_by_the_place_that_submits_them() {
    on_both(1, async |cpu, fair| {
        fair.key("a").spawn_cpu(|| ()).await.unwrap();
        fair.key("a")
            .by(&cpu.handle().with_name("thumbnail"))
            .spawn(async {})
            .await
            .unwrap();
        let (release, held) = keep_a_thread(&fair, "a");
        let captured = Arc::new(());
        let cancelled = fair.key("a").spawn_cpu(move || drop(captured));
        drop(cancelled);
        drop(release);
        held.await.unwrap();
        let sites = format!("{}", cpu.handle().call_sites());
        assert!(
            sites.contains("contract.rs") && sites.contains("thumbnail"),
            "{sites}"
        );
        assert!(!sites.contains("src/fair"), "{sites}");
    });
}

#[test]
fn the_lanes_limit_does_not_count_what_waits_here() {
    let io = tokio::runtime::Runtime::new().unwrap();
    let builder = CpuRuntime::builder().io_handle(io.handle().clone());
    let normal = twolane::Priority::Normal;
    let cpu = builder
        .worker_threads(1)
        .queue_limit(normal, 2)
        .build()
        .unwrap();
    io.block_on(async {
        let fair = Fair::new(cpu.handle());
        let (release, held) = keep_a_thread(&fair, "a");
        let queued: Vec<_> = (0..50).map(|_| fair.key("a").spawn_cpu(|| ())).collect();
        let plain = cpu.spawn_cpu(|| 1);
        drop(release);
        held.await.unwrap();
        assert_eq!(plain.await.unwrap(), 1);
        assert!(join_all(queued).await.iter().all(Result::is_ok));
    });
}

#[test]
fn limits_and_weights_of_zero_are_refused() {
    let cpu = CpuRuntime::builder();
    let io = tokio::runtime::Runtime::new().unwrap();
    let cpu = cpu.io_handle(io.handle().clone()).build().unwrap();
    let fair = || Fair::<&str>::new(cpu.handle());
    for (text, does) in [
        (
            "max_queued_per_key(0)",
            Box::new(|| drop(fair().max_queued_per_key(0))) as Box<dyn Fn()>,
        ),
        ("max_keys(0)", Box::new(|| drop(fair().max_keys(0)))),
        (
            "with_weight(0)",
            Box::new(|| drop(fair().key("a").with_weight(0))),
        ),
    ] {
        let payload = catch_unwind(AssertUnwindSafe(does)).unwrap_err();
        let payload = payload.downcast::<&str>().unwrap();
        assert!(payload.contains(text), "{payload}");
    }
}

#[test]
fn keys_that_come_once_leave_nothing() {
    on_both(2, async |_cpu, _| {
        let cpu = CpuRuntime::new().unwrap();
        let fair = Fair::new(cpu.handle()).max_keys(100);
        for key in 0..5_000_u32 {
            let alive = Arc::new(key);
            let known = Arc::downgrade(&alive);
            fair.key(alive.clone()).spawn_cpu(|| ()).await.unwrap();
            drop((alive, known));
        }
        assert!(fair.busiest(usize::MAX).len() <= 100);
    });
}
