//! Jobs that do not end by an output.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use twolane::{JoinErrorKind, Key};

use crate::on_lane;

#[test]
fn a_panic_is_an_error_and_the_turn_comes_back() {
    on_lane(1, async |_cpu, keys| {
        let computed = || (0..2_000_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
        for _ in 0..3 {
            let task = keys.of("a").spawn_cpu(move || -> u64 {
                computed();
                panic!("on purpose")
            });
            let error = task.await.unwrap_err();
            assert!(error.is_panic(), "{error}");
            let error = keys
                .of("a")
                .spawn_cpu_with(|_| -> Result<(), _> { panic!("here too") });
            assert!(error.await.unwrap_err().is_panic());
        }
        assert_eq!(keys.of("b").spawn_cpu(|| 2).await.unwrap(), 2);
        let usage = &keys.busiest()[0];
        assert_eq!(&*usage.key, "a", "a panic is charged");
        assert!(
            usage.computed > Duration::from_micros(100),
            "{:?}",
            usage.computed
        );
    });
}

#[test]
fn a_shutdown_answers_what_is_queued() {
    on_lane(1, async |cpu, keys| {
        let (release, held) = keys.keep_a_thread("a");
        let queued: Vec<_> = (0..10).map(|n| keys.of("a").spawn_cpu(move || n)).collect();
        let with = keys.of("b").spawn_cpu_with(|_| Ok(1));
        let shutdown = cpu.shutdown();
        drop(release);
        held.await.unwrap();
        for task in queued {
            // Run, or refused: answered.
            let _ = task.await;
        }
        let _ = with.await;
        shutdown.await;
        let error = keys.of("c").spawn_cpu(|| 1).await.unwrap_err();
        assert_eq!(error.kind(), JoinErrorKind::Shutdown);
        assert_eq!(
            keys.busiest().iter().map(|usage| usage.queued).sum::<u64>(),
            0
        );
    });
}

#[test]
fn a_shutdown_with_a_long_queue_takes_no_stack() {
    on_lane(1, async |cpu, keys| {
        let many = cpu.handle().with_key(Key::new("a").with_max_jobs(u16::MAX));
        let (release, held) = keys.keep_a_thread("a");
        let queued: Vec<_> = (0..50_000).map(|_| many.spawn_cpu(|| ())).collect();
        let shutdown = cpu.shutdown();
        drop(release);
        held.await.unwrap();
        shutdown.await;
        for task in queued {
            assert_eq!(task.await.unwrap_err().kind(), JoinErrorKind::Shutdown);
        }
    });
}

#[test]
fn a_destructor_that_panics_hangs_nobody() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }
    on_lane(1, async |cpu, keys| {
        let (release, held) = keys.keep_a_thread("a");
        let panics = Panics;
        let task = keys.of("a").spawn_cpu(move || drop(panics));
        let next = keys.of("a").spawn_cpu(|| 1);
        let shutdown = cpu.shutdown();
        drop(release);
        held.await.unwrap();
        shutdown.await;
        for task in [task.await, next.await.map(|_| ())] {
            assert_eq!(task.unwrap_err().kind(), JoinErrorKind::Shutdown);
        }
    });
}

#[test]
fn a_deadline_ends_a_job_that_is_queued() {
    on_lane(1, async |cpu, keys| {
        let (release, held) = keys.keep_a_thread("a");
        let deadline = Instant::now() + Duration::from_millis(1);
        let late = cpu.handle().with_deadline(deadline);
        let late = late.with_key("b").spawn_cpu(|| 1);
        while Instant::now() < deadline {
            tokio::task::yield_now().await;
        }
        drop(release);
        held.await.unwrap();
        let error = late.await.unwrap_err();
        assert_eq!(error.kind(), JoinErrorKind::Expired);
        assert_eq!(keys.of("b").spawn_cpu(|| 1).await.unwrap(), 1);
    });
}

#[test]
fn a_shutdown_does_not_wait_for_a_turn() {
    on_lane(1, async |cpu, keys| {
        let (release, held) = keys.keep_a_thread("a");
        let is_shutdown = |error: twolane::JoinError| error.kind() == JoinErrorKind::Shutdown;
        let queued = keys.of("b").spawn_cpu(|| 1);
        let shutdown = cpu.shutdown();
        assert!(is_shutdown(queued.await.unwrap_err()));
        assert!(is_shutdown(
            keys.of("c").spawn(async { 1 }).await.unwrap_err()
        ));
        drop(release);
        held.await.unwrap();
        shutdown.await;
        assert!(keys.busiest().iter().all(|usage| usage.queued == 0));
    });
}

#[test]
fn a_checkpoint_fails_once_the_task_was_dropped() {
    on_lane(2, async |_cpu, keys| {
        let (begun, has_begun) = channel();
        let (send, ended) = tokio::sync::oneshot::channel();
        let task = keys.of("a").spawn_cpu_with(move |job| {
            begun.send(()).unwrap();
            loop {
                if let Err(cancelled) = job.checkpoint() {
                    send.send(()).unwrap();
                    return Err::<(), _>(cancelled);
                }
            }
        });
        has_begun.recv().unwrap();
        drop(task);
        ended.await.unwrap();
        assert_eq!(keys.of("a").spawn_cpu_with(|_| Ok(1)).await.unwrap(), 1);
    });
}
