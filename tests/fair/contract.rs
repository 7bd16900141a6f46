//! What a tenant gets: order, shares, bounds, names, spans.

use std::future::{pending, poll_fn};
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::join_all;
use twolane::fair::FairError;
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
fn a_full_key_is_refused_alone_and_a_cancelled_job_makes_room() {
    on_both(1, async |_cpu, fair| {
        let fair = fair.max_queued_per_key(2);
        let (release, held) = keep_a_thread(&fair, "a");
        let (captured, is_dropped) = (Arc::new(()), |it: &Arc<()>| Arc::strong_count(it) == 1);
        let keeps = captured.clone();
        let one = fair.key("a").spawn_cpu(move || drop(keeps));
        let two = fair.key("a").spawn(async { 2 });
        let error = fair.key("a").spawn_cpu(|| 3).await.unwrap_err();
        assert!(error.is_key_full() && error.is_queue_full());
        let text = error.to_string();
        assert!(
            text.contains("2 jobs of this key") && text.contains("max_queued_per_key"),
            "{text}"
        );
        let other = fair.key("b").spawn_cpu(|| 4);

        drop(one);
        let three = fair.key("a").spawn_cpu(|| 3);
        drop(release);
        held.await.unwrap();
        assert_eq!(two.await.unwrap(), 2);
        assert_eq!(three.await.unwrap(), 3);
        assert_eq!(other.await.unwrap(), 4);
        assert!(is_dropped(&captured));
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

/// Each job that the lane refuses gives its turn to the next.
/// The lane refuses it, and so the thread that gave it its turn drops what it captured.
/// What is queued is answered at once, although a job that has its turn goes on.
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
        let fair = Fair::new(&cpu.handle());
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
    let fair = || Fair::<&str>::new(&cpu.handle());
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
        let payload = catch_unwind(std::panic::AssertUnwindSafe(does)).unwrap_err();
        let payload = payload.downcast::<&str>().unwrap();
        assert!(payload.contains(text), "{payload}");
    }
}

#[test]
fn keys_that_come_once_leave_nothing() {
    on_both(2, async |_cpu, _| {
        let cpu = CpuRuntime::new().unwrap();
        let fair = Fair::new(&cpu.handle()).max_keys(100);
        for key in 0..5_000_u32 {
            let alive = Arc::new(key);
            let known = Arc::downgrade(&alive);
            fair.key(alive.clone()).spawn_cpu(|| ()).await.unwrap();
            drop((alive, known));
        }
        assert!(fair.busiest(usize::MAX).len() <= 100);
    });
}
