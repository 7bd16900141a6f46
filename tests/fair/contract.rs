//! What a tenant gets: order, shares, bounds, names, spans.

use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, join_all};
use twolane::{CpuRuntime, JoinError, JoinErrorKind, Key, Priority};

use crate::{Keys, Notes, on_lane};

fn spin(steps: u64) {
    (0..steps).for_each(|n| _ = std::hint::black_box(n));
}

fn is_key_full(error: &JoinError) -> bool {
    error.kind() == JoinErrorKind::KeyFull && error.is_unavailable()
}

#[test]
fn a_flood_does_not_queue_before_the_others() {
    on_lane(1, async |_cpu, keys| {
        let (release, held) = keys.keep_a_thread("flood");
        let notes = Notes::default();
        let submit = |key| {
            let notes = notes.clone();
            keys.of(key).spawn_cpu(move || notes.note(key))
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
    on_lane(1, async |_cpu, keys| {
        let (release, held) = keys.keep_a_thread("a");
        let (send, order) = channel();
        let submit = |n| {
            let send = send.clone();
            keys.of("a").spawn_cpu(move || send.send(n).unwrap())
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
    on_lane(1, async |cpu, keys| {
        let a = cpu.handle().with_key(Key::new("a").with_max_jobs(3));
        let (release, held) = keys.keep_a_thread("a");
        let one = a.spawn_cpu(|| 1);
        let two = a.spawn(async { 2 });
        let error = a.spawn_cpu(|| 3).await.unwrap_err();
        assert!(is_key_full(&error));
        let text = error.to_string();
        assert!(
            text.contains("3 jobs of this key") && text.contains("with_max_jobs"),
            "{text}"
        );
        assert!(is_key_full(&a.try_reserve().unwrap_err()));
        assert!(
            is_key_full(&a.reserve().await.unwrap_err()),
            "nobody waits for a key"
        );
        assert_eq!(cpu.handle().metrics().rejected, 3);
        let other = keys.of("b").spawn_cpu(|| 4);
        drop(release);
        held.await.unwrap();
        assert_eq!(one.await.unwrap(), 1);
        assert_eq!(two.await.unwrap(), 2);
        assert_eq!(a.spawn_cpu(|| 3).await.unwrap(), 3);
        assert_eq!(other.await.unwrap(), 4);
    });
}

/// A client that comes and goes must not fill the memory.
#[test]
fn a_job_that_was_dropped_counts_until_the_lane_has_dropped_it() {
    on_lane(1, async |cpu, keys| {
        let a = cpu.handle().with_key(Key::new("a").with_max_jobs(9));
        let (release, held) = keys.keep_a_thread("a");
        let captured = Arc::new(());
        let submit = |cpu: &twolane::Handle| {
            let keeps = captured.clone();
            cpu.spawn_cpu(move || panic!("{keeps:?} was dropped before it began"))
        };
        for _ in 0..1_000 {
            drop(submit(&a));
        }
        assert_eq!(Arc::strong_count(&captured) - 1, 8);
        let error: JoinError = submit(&a).await.unwrap_err();
        assert!(is_key_full(&error));
        drop(submit(&keys.of("b")));
        drop(release);
        held.await.unwrap();
        // Behind them in the queue, so they are gone.
        assert_eq!(keys.of("a").spawn_cpu(|| 1).await.unwrap(), 1);
        assert_eq!(keys.of("b").spawn_cpu(|| 1).await.unwrap(), 1);
        assert_eq!(Arc::strong_count(&captured), 1);
    });
}

#[test]
fn suspended_futures_of_a_key_are_bounded_as_its_queue_is() {
    on_lane(1, async |cpu, keys| {
        let begin = |key| {
            let handle = cpu.handle().with_key(Key::new(key).with_max_jobs(8));
            let (begins, begun) = channel();
            let task = handle.spawn(async move {
                begins.send(()).unwrap();
                pending::<()>().await
            });
            // An error: it was refused.
            (task, begun.recv().is_ok())
        };
        let tasks: Vec<_> = (0..100).map(|_| begin("a")).collect();
        assert_eq!(tasks.iter().filter(|(_, has_begun)| *has_begun).count(), 8);
        let (refused, _) = tasks.into_iter().next_back().unwrap();
        assert!(is_key_full(&refused.await.unwrap_err()));
        assert!(begin("b").1, "another key");
        // They have been dropped, and the lane drops them.
        while !begin("a").1 {}
        assert_eq!(keys.of("a").spawn_cpu(|| 1).await.unwrap(), 1);
    });
}

/// Plain jobs are a key of their own: neither waits behind the other's queue.
#[test]
fn plain_jobs_and_those_of_keys_do_not_starve_each_other() {
    on_lane(1, async |_cpu, keys| {
        let (release, held) = keys.keep_a_thread("a");
        let notes = Notes::default();
        let submit = |cpu: &twolane::Handle, what| {
            let notes = notes.clone();
            cpu.spawn_cpu(move || notes.note(what))
        };
        let plain = (0..200).map(|_| submit(&keys.0, "plain"));
        let mut tasks: Vec<_> = plain.collect();
        tasks.extend((0..200).map(|_| submit(&keys.of("a"), "a")));
        drop(release);
        held.await.unwrap();
        for task in tasks {
            task.await.unwrap();
        }
        let notes = notes.read();
        let first = |what| notes.iter().position(|note| *note == what).unwrap();
        assert!(first("a") < 20 && first("plain") < 20, "{notes:?}");
    });
}

/// While one of them ran, plain jobs counted as a key without a queue, and lost what they were due: on
/// two threads they got an eighth.
#[test]
fn plain_jobs_get_their_share_on_two_threads() {
    on_lane(2, async |cpu, keys| {
        let held = ["a", "a"].map(|key| keys.keep_a_thread(key));
        let ran = Arc::new(AtomicUsize::new(0));
        let plain = (0..800).map(|_| {
            let ran = ran.clone();
            cpu.spawn_cpu(move || {
                spin(20_000);
                ran.fetch_add(1, SeqCst);
            })
        });
        let plain: Vec<_> = plain.collect();
        let long = (0..40).map(|_| {
            let ran = ran.clone();
            keys.of("a").spawn_cpu(move || {
                spin(400_000);
                ran.load(SeqCst)
            })
        });
        let long: Vec<_> = long.collect();
        drop(held);
        // As much work as the plain jobs: both end at about the same time.
        let at_the_end = join_all(long).await.into_iter().map(Result::unwrap).max();
        assert!(at_the_end > Some(400), "{at_the_end:?} of 800");
        join_all(plain).await;
    });
}

/// Plain jobs were not charged while no job of a key was queued, so a key that came back after hours
/// still waited for what it had had more.
#[test]
fn a_key_owes_nothing_once_plain_jobs_have_had_as_much() {
    on_lane(1, async |cpu, keys| {
        let plain = |n| (0..n).map(|_| cpu.spawn_cpu(|| spin(400_000)));
        // From here on there are always plain jobs in the queue: else the debt would end at once.
        let (release, held) = keys.keep_a_thread("other");
        let long = keys.of("a").spawn_cpu(|| spin(4_000_000));
        let others: Vec<_> = plain(50).collect();
        let (next_release, next): (_, Receiver<()>) = channel();
        let next_held = cpu.spawn_cpu(move || _ = next.recv());
        drop(release);
        held.await.unwrap();
        long.await.unwrap();
        join_all(others).await;
        let notes = Notes::default();
        let submit = |cpu: &twolane::Handle, what| {
            let notes = notes.clone();
            cpu.spawn_cpu(move || {
                spin(400_000);
                notes.note(what);
            })
        };
        let mut tasks: Vec<_> = (0..9).map(|_| submit(&keys.0, "plain")).collect();
        tasks.push(submit(&keys.of("a"), "a"));
        drop(next_release);
        next_held.await.unwrap();
        join_all(tasks).await;
        let notes = notes.read();
        let at = notes.iter().position(|what| *what == "a");
        assert!(at.is_some_and(|at| at < 4), "{notes:?}");
    });
}

/// It was charged what the job before it on its thread had taken.
#[test]
fn a_job_that_never_ran_is_not_charged() {
    on_lane(1, async |cpu, keys| {
        let spin = || spin(400_000);
        for _ in 0..3 {
            let (release, held) = keys.keep_a_thread("other");
            let plain = cpu.spawn_cpu(spin);
            drop(release);
            held.await.unwrap();
            plain.await.unwrap();
            let late = keys.of("late").with_deadline(Instant::now());
            let (release, held) = keys.keep_a_thread("other");
            let late = late.spawn(async {});
            drop(keys.of("gone").spawn_cpu(spin));
            drop(release);
            held.await.unwrap();
            assert_eq!(late.await.unwrap_err().kind(), JoinErrorKind::Expired);
            cpu.spawn_cpu(|| ()).await.unwrap();
        }
        let gone = keys.busiest().into_iter().find(|key| &*key.key == "gone");
        assert_eq!(gone.unwrap().computed, Duration::ZERO);
    });
}

/// On an idle lane its steps went on without the queue, and were not charged.
#[test]
fn a_future_that_wakes_itself_pays_for_each_step() {
    on_lane(1, async |_cpu, keys| {
        let mut steps = 0;
        let task = keys.of("a").spawn(poll_fn(move |cx| {
            spin(100_000);
            steps += 1;
            cx.waker().wake_by_ref();
            if steps < 50 {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        }));
        task.await.unwrap();
        let one = keys.of("b").spawn_cpu(|| {
            spin(100_000);
        });
        one.await.unwrap();
        let all = keys.busiest();
        assert!(all[0].computed > 10 * all[1].computed, "{all:?}");
    });
}

/// They are not refused, and count for their key alone.
#[test]
fn jobs_of_jobs_are_not_refused_and_the_bound_holds_after_them() {
    on_lane(1, async |cpu, keys| {
        let a = cpu.handle().with_key(Key::new("a").with_max_jobs(2));
        let inner = a.clone();
        let many = a.spawn_cpu(move || (0..100).map(|_| inner.spawn_cpu(|| ())).collect());
        let many: Vec<_> = many.await.unwrap();
        let all = join_all(many).await;
        assert!(all.into_iter().all(|task| task.is_ok()));
        let most = cpu
            .handle()
            .with_key(Key::new("most").with_max_jobs(u16::MAX));
        let (release, held) = keys.keep_a_thread("other");
        let tasks: Vec<_> = (0..u16::MAX).map(|_| most.spawn_cpu(|| ())).collect();
        assert!(is_key_full(&most.spawn_cpu(|| ()).await.unwrap_err()));
        drop(release);
        held.await.unwrap();
        assert!(join_all(tasks).await.into_iter().all(|task| task.is_ok()));
        assert!(most.spawn_cpu(|| ()).await.is_ok() && a.spawn_cpu(|| ()).await.is_ok());
    });
}

/// Whatever submits: each has the key's share, and the key's bound.
#[test]
fn all_ways_to_submit_have_the_key() {
    on_lane(1, async |cpu, keys| {
        use futures::StreamExt;
        use twolane::CpuStreamExt;
        let a = keys.of("a");
        let spin = || (0..400_000).fold(0, |sum, n| std::hint::black_box(sum ^ n));
        let computed = || {
            keys.busiest()
                .first()
                .map_or(Duration::ZERO, |key| key.computed)
        };
        let mut before = computed();
        // A stream's reader may have its last item before the step has ended.
        let mut is_charged = async |what: &str| {
            cpu.spawn_cpu(|| ()).await.unwrap();
            let now = computed();
            assert!(now > before, "{what}");
            before = now;
        };
        a.spawn_cpu(spin).await.unwrap();
        is_charged("spawn_cpu").await;
        a.spawn_cpu_with(move |_| Ok(spin())).await.unwrap();
        is_charged("spawn_cpu_with").await;
        a.spawn(async move { spin() }).await.unwrap();
        is_charged("spawn").await;
        a.try_reserve().unwrap().spawn_cpu(spin).await.unwrap();
        is_charged("try_reserve").await;
        a.reserve()
            .await
            .unwrap()
            .spawn(async move { spin() })
            .await
            .unwrap();
        is_charged("reserve").await;
        let items = futures::stream::iter(0..10).map(move |_| spin());
        a.stream_from_cpu(items, 4, |_| 1).collect::<Vec<_>>().await;
        is_charged("stream_from_cpu").await;
        let items = futures::stream::iter(0..10).on_cpu(&a).map(move |_| spin());
        assert_eq!(items.buffered(2).collect::<Vec<_>>().await.len(), 10);
        is_charged("on_cpu").await;
        let in_time = a.with_deadline(Instant::now() + Duration::from_secs(60));
        in_time.with_name("named").spawn_cpu(spin).await.unwrap();
        is_charged("with_deadline, with_name").await;
        let _entered = a.enter();
        twolane::spawn_cpu(spin).await.unwrap();
        is_charged("enter").await;
        cpu.handle()
            .spawn_io(async move { twolane::spawn_cpu(spin).await })
            .await
            .unwrap()
            .unwrap();
        assert_eq!(computed(), before, "the handle of `cpu` has no key");
    });
}

#[test]
fn the_busiest_keys_come_by_what_they_used() {
    on_lane(1, async |_cpu, keys| {
        for (n, key) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            let spin = move || (0..n * 400_000).fold(0, |sum, n| std::hint::black_box(sum ^ n));
            keys.of(key).spawn_cpu(spin).await.unwrap();
        }
        let all = keys.busiest();
        assert_eq!(all.len(), 5);
        assert!(all.is_sorted_by(|one, next| one.computed >= next.computed));
        for key in 0..100 {
            keys.of(&key.to_string()).spawn_cpu(|| ()).await.unwrap();
        }
        let most = keys.busiest();
        assert_eq!(most.len(), 32);
        assert_eq!(most[0].key, all[0].key);
    });
}

#[test]
fn a_job_that_sleeps_pays_for_its_thread() {
    on_lane(1, async |_cpu, keys| {
        let sleep = || {
            let began = Instant::now();
            std::thread::sleep(Duration::from_millis(20));
            began.elapsed()
        };
        let slept = keys.of("a").spawn_cpu(sleep).await.unwrap();
        let paid = keys.busiest()[0].computed;
        // A reading may be 10 µs old.
        assert!(
            paid * 8 + Duration::from_micros(10) >= slept,
            "{paid:?} of {slept:?}"
        );
    });
}

#[test]
fn a_job_waits_for_another_one_of_its_key() {
    on_lane(1, async |_cpu, keys| {
        fn nested(keys: Keys, depth: u32) -> BoxFuture<'static, u32> {
            Box::pin(async move {
                match depth {
                    0 => 1,
                    depth => {
                        let inner = nested(keys.clone(), depth - 1);
                        keys.of("a").spawn(inner).await.unwrap() + 1
                    }
                }
            })
        }
        assert_eq!(nested(keys, 20).await, 21);
    });
}

#[test]
fn a_suspended_future_has_no_turn_and_each_step_is_charged() {
    on_lane(1, async |_cpu, keys| {
        let suspended = [0; 10].map(|_| keys.of("a").spawn(pending::<()>()));
        assert_eq!(keys.of("a").spawn_cpu(|| 1).await.unwrap(), 1);
        assert_eq!(keys.of("b").spawn_cpu(|| 1).await.unwrap(), 1);
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
        assert_eq!(keys.of("steps").spawn(stepped).await.unwrap(), 20);
        assert_eq!(&*keys.busiest()[0].key, "steps");
    });
}

#[test]
fn jobs_run_before_anybody_awaits_them() {
    on_lane(1, async |_cpu, keys| {
        let ran = Arc::new(AtomicUsize::new(0));
        let count = || {
            let ran = ran.clone();
            keys.of("a").spawn_cpu(move || ran.fetch_add(1, SeqCst))
        };
        let tasks: Vec<_> = (0..50).map(|_| count()).collect();
        keys.of("a").spawn_cpu(|| ()).await.unwrap();
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
    on_lane(1, async |_cpu, keys| {
        let (release, held) = tracing::info_span!("first").in_scope(|| keys.keep_a_thread("a"));
        let second = tracing::info_span!("second").in_scope(|| keys.of("a").spawn_cpu(span));
        let outside = keys.of("a").spawn_cpu(span);
        let future = tracing::info_span!("third").in_scope(|| keys.of("a").spawn(async { span() }));
        drop(release);
        held.await.unwrap();
        assert_eq!(second.await.unwrap(), Some("second"));
        assert_eq!(outside.await.unwrap(), None, "not another job's");
        assert_eq!(future.await.unwrap(), Some("third"));
        assert_eq!(keys.of("a").spawn_cpu(span).await.unwrap(), None);
    });
}

#[test]
fn jobs_go_by_the_place_that_submits_them() {
    on_lane(1, async |cpu, keys| {
        keys.of("a").spawn_cpu(|| ()).await.unwrap();
        let named = keys.of("a").with_name("thumbnail");
        named.spawn(async {}).await.unwrap();
        let sites = format!("{}", cpu.handle().call_sites());
        assert!(
            sites.contains("contract.rs") && sites.contains("thumbnail"),
            "{sites}"
        );
    });
}

#[test]
fn the_limit_in_jobs_counts_all() {
    let io = tokio::runtime::Runtime::new().unwrap();
    let builder = CpuRuntime::builder().io_handle(io.handle().clone());
    let builder = builder.worker_threads(1);
    let cpu = builder.queue_limit(Priority::Normal, 3).build().unwrap();
    io.block_on(async {
        let keys = Keys(cpu.handle().clone());
        let (release, held) = keys.keep_a_thread("a");
        let [a, plain] = [keys.of("a"), cpu.handle().clone()].map(|it| it.spawn_cpu(|| 1));
        let full = keys.of("b").spawn_cpu(|| 1).await.unwrap_err();
        assert_eq!(full.kind(), JoinErrorKind::QueueFull);
        assert!(full.to_string().contains("3 jobs"), "{full}");
        let waits = keys.of("b").reserve();
        drop(release);
        held.await.unwrap();
        assert_eq!(waits.await.unwrap().spawn_cpu(|| 2).await.unwrap(), 2);
        assert_eq!((a.await.unwrap(), plain.await.unwrap()), (1, 1));
        // What was refused, or has ended, has left nothing behind.
        for _ in 0..1_000 {
            keys.of("b").spawn_cpu(|| ()).await.unwrap();
        }
    });
}

/// One key fills the part of the room that its share is, and the others have theirs.
#[test]
fn a_limit_in_time_leaves_each_key_its_part() {
    let io = tokio::runtime::Runtime::new().unwrap();
    let builder = CpuRuntime::builder().io_handle(io.handle().clone());
    let wait = Duration::from_millis(500);
    let cpu = builder.worker_threads(1).max_wait(Priority::Normal, wait);
    let cpu = cpu.build().unwrap();
    io.block_on(async {
        let keys = Keys(cpu.handle().clone());
        let (release, held) = keys.keep_a_thread("z");
        // Of each job nothing is known: it counts an eighth of 450 ms.
        let fill = |cpu: twolane::Handle| {
            let submit = || cpu.try_reserve().map(|permit| permit.spawn_cpu(|| ()));
            std::iter::from_fn(|| submit().ok()).collect::<Vec<_>>()
        };
        let a = fill(keys.of("a"));
        let refused = keys.of("a").spawn_cpu(|| ()).await.unwrap_err();
        assert_eq!(refused.retry_after(), Some(wait));
        let b = fill(keys.of("b"));
        let plain = fill(cpu.handle().clone());
        assert!(a.len() >= 4 && !b.is_empty() && !plain.is_empty());
        assert!(a.len() > b.len(), "{} {}", a.len(), b.len());
        drop(release);
        held.await.unwrap();
        join_all(a.into_iter().chain(b).chain(plain)).await;
        let again = fill(keys.of("b"));
        assert!(!again.is_empty(), "what they were charged is free again");
    });
}

#[test]
fn bounds_and_weights_of_zero_are_refused() {
    let zero: [(_, fn()); 2] = [
        ("with_max_jobs(0)", || drop(Key::new("a").with_max_jobs(0))),
        ("with_weight(0)", || drop(Key::new("a").with_weight(0))),
    ];
    for (text, does) in zero {
        let payload = catch_unwind(AssertUnwindSafe(does)).unwrap_err();
        let payload = payload.downcast::<&str>().unwrap();
        assert!(payload.contains(text), "{payload}");
    }
}
