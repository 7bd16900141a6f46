//! A shutdown drops the Tokio tasks that jobs have spawned inside
//! `in_cpu_context`. What does the awaiter of such a job learn?
//!
//! The error that the job made of it, once: DataFusion's "task was cancelled". A job
//! that is in the middle of a poll finds a part of it dropped, and returns.

use futures::executor::block_on_stream;
use futures::future::{BoxFuture, FutureExt};
use twolane_core::{JoinErrorKind, in_cpu_context};

use crate::parts_of::{Part, is_cut, is_cut_with_a_job, two_threads};

type Joined = BoxFuture<'static, Result<(), tokio::task::JoinError>>;

/// Each does with the error of its part what it likes: it returns it, panics for it, or has awaited the
/// part outside of the wrapper, in its next step.
const JOBS: [fn(Part) -> Joined; 3] = [
    |part| in_cpu_context(part.spawn_and_join()).boxed(),
    |part| {
        let panics = async {
            part.spawn_and_join().await.unwrap();
            Ok(())
        };
        in_cpu_context(panics).boxed()
    },
    |part| {
        let elsewhere = async move {
            let (spawned, part) = in_cpu_context(async { (part.spawn(), part) }).await;
            twolane_core::yield_now().await;
            part.join(spawned).await
        };
        elsewhere.boxed()
    },
];

#[test]
fn a_job_that_has_lost_a_part_is_shut_down() {
    for (nth, job) in JOBS.into_iter().enumerate() {
        println!("job {nth}");
        let lanes = two_threads();
        let (part, awaits) = Part::new();
        let job = lanes.cpu.spawn(job(part));
        awaits.recv().unwrap();
        lanes.cpu.shutdown_background();
        let error = job.wait().expect_err("it has lost a part");
        assert_eq!(error.kind(), JoinErrorKind::Shutdown, "{error}");
        let now = lanes.cpu.handle().metrics();
        assert_eq!((now.completed, now.panicked, now.dropped), (0, 0, 1));
        assert_eq!((now.running, now.suspended), (0, 0));
    }
}

/// Its output is what it makes of the shutdown.
#[test]
fn a_closure_returns_what_it_returns() {
    let lanes = two_threads();
    let (part, awaits) = Part::new();
    let job = lanes
        .cpu
        .spawn_cpu(|| futures::executor::block_on(in_cpu_context(part.spawn_and_join())));
    awaits.recv().unwrap();
    lanes.cpu.shutdown_background();
    assert!(job.wait().unwrap().unwrap_err().is_cancelled());
}

#[test]
fn a_stream_that_ends_because_of_it_is_an_error() {
    is_cut(|cpu, part| {
        let stream = in_cpu_context(part.into_stream());
        let items = cpu.stream_from_cpu(stream, 1, |_| 1);
        let all: Result<Vec<u8>, _> = block_on_stream(Box::pin(items)).collect();
        all.map(|all| all.len())
    });
}

/// A channel ends like a complete one when the job that sends is dropped. The reader of
/// a stream took that for the end.
#[test]
fn a_stream_that_ends_with_a_job_of_its_lane_is_an_error() {
    is_cut_with_a_job(|cpu, source, look| {
        let items = cpu.stream_from_cpu(source, 9, |_| 1);
        block_on_stream(Box::pin(items)).for_each(|item| look(item.is_ok()));
    });
}
