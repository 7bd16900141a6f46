//! Jobs that do not end by an output.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use twolane::JoinErrorKind;
use twolane::fair::FairError;

use crate::{keep_a_thread, on_both};

#[test]
fn a_panic_is_an_error_and_the_turn_comes_back() {
    on_both(1, async |_cpu, fair| {
        let computed = || (0..2_000_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
        for _ in 0..3 {
            let task = fair.key("a").spawn_cpu(move || -> u64 {
                computed();
                panic!("on purpose")
            });
            let error = task.await.unwrap_err();
            assert!(
                matches!(&error, FairError::Job(error) if error.is_panic()),
                "{error}"
            );
            let error = fair
                .key("a")
                .spawn_cpu_with(|_| -> Result<(), _> { panic!("here too") });
            assert!(matches!(error.await.unwrap_err(), FairError::Job(error) if error.is_panic()));
        }
        assert_eq!(fair.key("b").spawn_cpu(|| 2).await.unwrap(), 2);
        let usage = fair.busiest(1).pop().unwrap();
        assert_eq!(*usage.key, "a", "a panic is charged");
        assert!(
            usage.cpu_time > Duration::from_micros(100),
            "{:?}",
            usage.cpu_time
        );
    });
}

#[test]
fn a_shutdown_answers_what_is_queued() {
    on_both(1, async |cpu, fair| {
        let (release, held) = keep_a_thread(&fair, "a");
        let queued: Vec<_> = (0..10)
            .map(|n| fair.key("a").spawn_cpu(move || n))
            .collect();
        let with = fair.key("b").spawn_cpu_with(|_| Ok(1));
        let shutdown = cpu.shutdown();
        drop(release);
        held.await.unwrap();
        for task in queued {
            // Run, or refused: answered.
            assert!(matches!(task.await, Ok(_) | Err(FairError::Job(_))));
        }
        let _ = with.await;
        shutdown.await;
        let error = fair.key("c").spawn_cpu(|| 1).await.unwrap_err();
        assert!(matches!(&error, FairError::Job(error) if error.kind() == JoinErrorKind::Shutdown));
        assert_eq!(
            fair.busiest(10)
                .iter()
                .map(|usage| usage.queued)
                .sum::<usize>(),
            0
        );
    });
}

#[test]
fn a_shutdown_with_a_long_queue_takes_no_stack() {
    on_both(1, async |cpu, fair| {
        let fair = fair.max_queued_per_key(100_000);
        let (release, held) = keep_a_thread(&fair, "a");
        let queued: Vec<_> = (0..50_000)
            .map(|_| fair.key("a").spawn_cpu(|| ()))
            .collect();
        let shutdown = cpu.shutdown();
        drop(release);
        held.await.unwrap();
        shutdown.await;
        for task in queued {
            let error = task.await.unwrap_err();
            assert!(
                matches!(error, FairError::Job(error) if error.kind() == JoinErrorKind::Shutdown)
            );
        }
    });
}

#[test]
fn a_destructor_that_panics_is_the_error_of_its_job() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }
    on_both(1, async |cpu, fair| {
        let (release, held) = keep_a_thread(&fair, "a");
        let panics = Panics;
        let task = fair.key("a").spawn_cpu(move || drop(panics));
        let next = fair.key("a").spawn_cpu(|| 1);
        let shutdown = cpu.shutdown();
        drop(release);
        held.await.unwrap();
        shutdown.await;
        assert!(matches!(task.await.unwrap_err(), FairError::Job(error) if error.is_panic()));
        assert!(matches!(next.await.unwrap_err(), FairError::Job(error) if !error.is_panic()));
    });
}

#[test]
fn a_deadline_ends_a_job_that_is_queued() {
    on_both(1, async |cpu, fair| {
        let (release, held) = keep_a_thread(&fair, "a");
        let deadline = Instant::now() + Duration::from_millis(1);
        let late = cpu.handle().with_deadline(deadline);
        let late = fair.key("b").by(&late).spawn_cpu(|| 1);
        while Instant::now() < deadline {
            tokio::task::yield_now().await;
        }
        drop(release);
        held.await.unwrap();
        let error = late.await.unwrap_err();
        assert!(matches!(&error, FairError::Job(error) if error.kind() == JoinErrorKind::Expired));
        assert_eq!(fair.key("b").spawn_cpu(|| 1).await.unwrap(), 1);
    });
}

#[test]
fn a_shutdown_does_not_wait_for_a_turn() {
    on_both(1, async |cpu, fair| {
        let (release, held) = keep_a_thread(&fair, "a");
        let is_shutdown = |error| matches!(error, FairError::Job(error) if error.kind() == JoinErrorKind::Shutdown);
        let queued = fair.key("b").spawn_cpu(|| 1);
        let shutdown = cpu.shutdown();
        assert!(is_shutdown(queued.await.unwrap_err()));
        assert!(is_shutdown(
            fair.key("c").spawn(async { 1 }).await.unwrap_err()
        ));
        drop(release);
        held.await.unwrap();
        shutdown.await;
        assert!(fair.busiest(10).iter().all(|usage| usage.queued == 0));
    });
}

#[test]
fn a_checkpoint_fails_once_the_task_was_dropped() {
    on_both(2, async |_cpu, fair| {
        let (begun, has_begun) = channel();
        let (send, ended) = tokio::sync::oneshot::channel();
        let task = fair.key("a").spawn_cpu_with(move |job| {
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
        assert_eq!(fair.key("a").spawn_cpu_with(|_| Ok(1)).await.unwrap(), 1);
    });
}
