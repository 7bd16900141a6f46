//! How a query ends before its end.

use std::time::Duration;

use datafusion::prelude::SessionContext;
use futures::StreamExt;
use twolane::{Backend, BridgeError, JoinError};
use twolane_datafusion::{collect_on, stream_on};

use crate::lanes::lane_error;
use crate::setting::{GROUPS, LONG, Names, context, until};
use crate::support::{BOTH, Lanes, lanes, time_limit};

/// Waits until nothing is left of any query: no job, no task of the I/O runtime, and none that
/// holds memory.
async fn until_quiet(lanes: &Lanes, context: &SessionContext, tasks: usize) {
    until(|| {
        let jobs = lanes.cpu.handle().metrics();
        jobs.queued + jobs.running + jobs.suspended == 0
    })
    .await;
    until(|| lanes.io.metrics().num_alive_tasks() <= tasks).await;
    until(|| context.runtime_env().memory_pool.reserved() == 0).await;
}

#[test]
fn a_query_that_is_dropped_ends() {
    let _limit = time_limit();
    for backend in BOTH {
        for partitions in [1, 2] {
            let lanes = lanes(backend, 2);
            let names = Names::default();
            let context = context(partitions, &names);
            let cpu = lanes.cpu.handle();
            lanes.io.block_on(async {
                let tasks = lanes.io.metrics().num_alive_tasks();
                let query = collect_on(&cpu, context.sql(LONG).await.unwrap());
                until(|| !names.lock().unwrap().is_empty()).await;
                drop(query);
                until_quiet(&lanes, &context, tasks).await;

                let frame = context.sql(LONG).await.unwrap();
                names.lock().unwrap().clear();
                let mut stream = stream_on(&cpu, frame, 1 << 20).await.unwrap();
                assert!(futures::poll!(stream.next()).is_pending());
                until(|| !names.lock().unwrap().is_empty()).await;
                drop(stream);
                until_quiet(&lanes, &context, tasks).await;
            });
        }
    }
}

/// At a thousand moments of its life.
#[test]
fn a_thousand_queries_that_are_dropped_leave_nothing() {
    let _limit = time_limit();
    for backend in BOTH {
        for partitions in [1, 4] {
            let lanes = lanes(backend, 2);
            let context = context(partitions, &Names::default());
            let cpu = lanes.cpu.handle();
            lanes.io.block_on(async {
                let tasks = lanes.io.metrics().num_alive_tasks();
                for n in 0..250_u64 {
                    let frame = context.sql(GROUPS).await.unwrap();
                    let query = collect_on(&cpu, frame);
                    let moment = Duration::from_micros(n * n % 20_011);
                    if let Ok(result) = tokio::time::timeout(moment, query).await {
                        result.unwrap();
                    }
                }
                until_quiet(&lanes, &context, tasks).await;
            });
            let jobs = lanes.cpu.handle().metrics();
            assert!(jobs.cancelled > 0, "{jobs:?}");
            assert_eq!(jobs.panicked, 0, "{jobs:?}");
            // It takes and ends queries as before.
            let frame = lanes.io.block_on(context.sql(GROUPS)).unwrap();
            lanes.io.block_on(collect_on(&cpu, frame)).unwrap();
        }
    }
}

/// The query, and its tasks, end as shut down: no panic on the way.
#[test]
fn a_shutdown_ends_a_query_as_such() {
    let _limit = time_limit();
    for backend in BOTH {
        for partitions in [1, 4] {
            let lanes = lanes(backend, 2);
            let names = Names::default();
            let context = context(partitions, &names);
            let cpu = lanes.cpu.handle();
            lanes.io.block_on(async {
                let tasks = lanes.io.metrics().num_alive_tasks();
                let query = collect_on(&cpu, context.sql(LONG).await.unwrap());
                let frame = context.sql(LONG).await.unwrap();
                let mut stream = stream_on(&cpu, frame, 1 << 20).await.unwrap();
                assert!(futures::poll!(stream.next()).is_pending());
                until(|| !names.lock().unwrap().is_empty()).await;
                lanes.cpu.shutdown_background();
                let error = query.await.unwrap_err();
                assert!(
                    lane_error(&error).is_some_and(JoinError::is_shutdown),
                    "{error:?}"
                );
                let error = stream.next().await.unwrap().unwrap_err();
                let cut = lane_error::<BridgeError>(&error);
                assert!(cut.is_some_and(|cut| !cut.is_panic()), "{error:?}");
                until_quiet(&lanes, &context, tasks).await;
            });
            assert_eq!(lanes.cpu.handle().metrics().panicked, 0);
        }
    }
}

/// On rayon its tasks are tasks of that runtime, too, and it is theirs that are awaited.
#[test]
fn the_end_of_the_io_runtime_is_an_error() {
    let _limit = time_limit();
    let Lanes { cpu, io } = lanes(Backend::Rayon, 2);
    let names = Names::default();
    let context = context(4, &names);
    let other = tokio::runtime::Runtime::new().unwrap();
    let frame = other.block_on(context.sql(LONG)).unwrap();
    let query = collect_on(&cpu.handle(), frame);
    other.block_on(until(|| !names.lock().unwrap().is_empty()));
    io.shutdown_background();
    other.block_on(query).unwrap_err();
}

/// One thread, which a query never leaves by itself for long.
#[test]
fn other_jobs_have_their_turn() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let names = Names::default();
        let context = context(1, &names);
        let cpu = lanes.cpu.handle();
        lanes.io.block_on(async {
            let query = collect_on(&cpu, context.sql(LONG).await.unwrap());
            until(|| !names.lock().unwrap().is_empty()).await;
            assert_eq!(cpu.spawn(async { 42 }).await.unwrap(), 42);
            drop(query);
        });
    }
}
