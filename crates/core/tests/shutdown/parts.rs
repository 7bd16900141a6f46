//! A shutdown drops the Tokio tasks that jobs have spawned inside
//! `in_cpu_context`. What does the awaiter of such a job learn?
//!
//! The error that the job made of it, once: DataFusion's "task was cancelled". A job
//! that is in the middle of a poll finds a part of it dropped, and returns.

use std::future::Future;

use futures::executor::block_on_stream;
use twolane_core::{JoinErrorKind, in_cpu_context};

use crate::parts_of::{Part, is_cut, is_cut_with_a_job, two_threads};
use crate::support::time_limit;

fn is_shut_down<F>(work: impl FnOnce(Part) -> F)
where
    F: Future<Output: Send> + Send + 'static,
{
    let _limit = time_limit();
    let lanes = two_threads();
    let (part, awaits) = Part::new();
    let job = lanes.cpu.spawn(work(part));
    awaits.recv().unwrap();
    lanes.cpu.shutdown_background();
    let error = job.wait().err().expect("it has lost a part");
    assert_eq!(error.kind(), JoinErrorKind::Shutdown, "{error}");
    let metrics = lanes.cpu.handle().metrics();
    let ended = (metrics.completed, metrics.panicked, metrics.dropped);
    assert_eq!(ended, (0, 0, 1));
    assert_eq!((metrics.running, metrics.suspended), (0, 0));
}

#[test]
fn a_job_that_returns_the_error_of_a_part_is_shut_down() {
    is_shut_down(|part| in_cpu_context(part.spawn_and_join()));
}

#[test]
fn so_is_one_that_panics_for_it() {
    is_shut_down(|part| in_cpu_context(async { part.spawn_and_join().await.unwrap() }));
}

#[test]
fn so_is_one_that_awaits_the_part_elsewhere() {
    is_shut_down(|part| async move {
        let (spawned, part) = in_cpu_context(async { (part.spawn(), part) }).await;
        // The next step.
        twolane_core::yield_now().await;
        part.join(spawned).await
    });
}

/// Its output is what it makes of the shutdown.
#[test]
fn a_closure_returns_what_it_returns() {
    let _limit = time_limit();
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
        let items: Vec<_> = block_on_stream(Box::pin(items)).collect();
        items
            .into_iter()
            .collect::<Result<Vec<u8>, _>>()
            .map(|all| all.len())
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
